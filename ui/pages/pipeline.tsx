import { Head } from '../parts/small.tsx'

export default function Pipeline() {
  return <Head title="Pipeline" question="" />
}
