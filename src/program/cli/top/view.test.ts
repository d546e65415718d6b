import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overviewTick, serviceOf } from '../../../../test/helpers/ui-agent.ts'
import { barAt, newView, press, shownServices, take } from './view.ts'

test('the bar passes services of one name in two namespaces', () => {
  const view = newView()
  const names = ['live', 'test']
  take(view, overviewTick([...names.map(namespace => serviceOf('cart', { namespace })), serviceOf('last')]))
  const down = () => {
    press(view, 'down', 20)
    return barAt(view, shownServices(view))
  }
  assert.deepEqual([down(), down(), down()], [1, 2, 2])
})
