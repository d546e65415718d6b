/** A name of Docker or Kubernetes as part of a label name, as in Prometheus (strutil.SanitizeLabelName). */
export function labelPart(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/gu, '_')
}
