// Label names, and those with a special meaning in Prometheus (its documentation, "Configuration", and
// `prometheus/common`, model/labels.go).

export const nameLabel = '__name__'
export const jobLabel = 'job'
export const instanceLabel = 'instance'
export const addressLabel = '__address__'
export const schemeLabel = '__scheme__'
export const metricsPathLabel = '__metrics_path__'
export const intervalLabel = '__scrape_interval__'
export const timeoutLabel = '__scrape_timeout__'
/** Prefix of labels that are URL parameters. */
export const paramPrefix = '__param_'
/** Prefix of labels that are not added to series. */
export const reservedPrefix = '__'
/** Prefix added to a label of a page whose name is also a label of its target. */
export const exportedPrefix = 'exported_'

/** Whether a name is a valid label name, as in Prometheus 3: any Unicode text. */
export function isLabelName(name: string): boolean {
  return name !== '' && isText(name)
}

/** Whether a text has no unpaired surrogate, so that it can be encoded as UTF-8. */
export function isText(text: string): boolean {
  return !/[\ud800-\udfff]/.test(text) || !/\p{Surrogate}/u.test(text)
}
