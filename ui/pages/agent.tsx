import { Head } from '../parts/small.tsx'

export default function Agent() {
  return <Head title="Agent" question="" />
}
