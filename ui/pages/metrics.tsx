import { Head } from '../parts/small.tsx'

export default function Metrics() {
  return <Head title="Metrics" question="" />
}
