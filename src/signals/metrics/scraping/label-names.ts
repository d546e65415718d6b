// Names of labels, and those that Prometheus gives a meaning (its documentation, "Configuration", and `prometheus/common`,
// model/labels.go).

export const nameLabel = '__name__'
export const jobLabel = 'job'
export const instanceLabel = 'instance'
export const addressLabel = '__address__'
export const schemeLabel = '__scheme__'
export const metricsPathLabel = '__metrics_path__'
export const intervalLabel = '__scrape_interval__'
export const timeoutLabel = '__scrape_timeout__'
/** Labels that begin so are parameters of the URL. */
export const paramPrefix = '__param_'
/** Labels that begin so do not reach the series. */
export const reservedPrefix = '__'
/** What is put before a page's label whose name a label of its target has. */
export const exportedPrefix = 'exported_'

/** Whether a label may have the name, as in Prometheus 3: any text of Unicode. */
export function isLabelName(name: string): boolean {
  return name !== '' && isText(name)
}

/** Whether a text has no half of a surrogate pair, so that UTF-8 can tell it. */
export function isText(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text) || !/\p{Surrogate}/u.test(text)
}
