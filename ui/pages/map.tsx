import { Head } from '../parts/small.tsx'

export default function MapPage() {
  return <Head title="Map" question="" />
}
