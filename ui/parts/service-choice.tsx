import { parameter, setParameters } from '../lib/route.ts'
import { Field } from './small.tsx'

/** Selects the `service` of the URL from the known ones; a selected service stays listed after it has gone. */
export function ServiceChoice({ services }: { readonly services: readonly string[] }) {
  const service = parameter('service')
  const names = service === '' || services.includes(service) ? services : [service, ...services]
  return (
    <Field label="Service">
      <select value={service} onChange={event => setParameters({ service: event.currentTarget.value })}>
        <option value="">All</option>
        {names.map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </Field>
  )
}
