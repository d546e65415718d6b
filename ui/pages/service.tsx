import { Head } from '../parts/small.tsx'

export default function Service() {
  return <Head title="Service" question="" />
}
