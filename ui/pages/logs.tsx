import { Head } from '../parts/small.tsx'

export default function Logs() {
  return <Head title="Logs" question="" />
}
