import { Head } from '../parts/small.tsx'

export default function Overview() {
  return <Head title="Overview" question="" />
}
