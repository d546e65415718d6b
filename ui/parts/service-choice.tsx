import { parameter, setParameters } from '../lib/route.ts'
import { Field } from './small.tsx'

/** Chooses the `service` of the URL, of those that there are; the one that is chosen stays though it has gone. */
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
