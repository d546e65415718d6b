// Writes the files of deploy/kustomize that follow from the chart.

import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { kustomizeFiles } from '../helpers/helm-objects.ts'

const root = resolve(import.meta.dirname, '../..')
for (const [file, text] of kustomizeFiles()) writeFileSync(resolve(root, file), text)
