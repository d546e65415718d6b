// Writes the deployment files generated from the program's own tables. With --check writes nothing and exits 1 naming
// the files that are stale.
import { dockerFiles } from './deploy/docker.ts'
import { grafanaFiles } from './deploy/grafana.ts'
import { kubernetesFiles } from './deploy/kubernetes.ts'
import { systemdFiles } from './deploy/systemd.ts'
import { writeGenerated } from './generated.ts'

writeGenerated('tools/gen-deploy.ts', [...systemdFiles, ...dockerFiles, ...kubernetesFiles, ...grafanaFiles])
