// The metrics that match a filter.

import type { MetricsDocument } from '../../../src/view/api/ui/documents.ts'

export type Section = MetricsDocument['sections'][number]
export type Family = Section['families'][number]

export interface Fit {
  readonly section: Section
  /** Its matching metrics. */
  readonly families: readonly Family[]
}

/** Finds metrics by words, all of which must be in the name, help, unit or collector. */
export class FamilyFilter {
  readonly sections: readonly Section[]
  /** Searched text, by section and family. */
  readonly #texts: readonly (readonly string[])[]

  constructor(sections: readonly Section[]) {
    this.sections = sections
    this.#texts = sections.map(({ name, source, families }) =>
      families.map(each =>
        [each.name, each.otel_name, each.help, each.type, each.unit, name, source].join(' ').toLowerCase(),
      ),
    )
  }

  /** All sections; sections without a match have an empty list. */
  find(text: string): readonly Fit[] {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    return this.sections.map((section, i) => ({
      section,
      families:
        words.length === 0
          ? section.families
          : section.families.filter((_, at) => words.every(word => this.#texts[i]![at]!.includes(word))),
    }))
  }
}

/** The first `most` metrics, with their sections. */
export function firstOf(found: readonly Fit[], most: number): readonly Fit[] {
  let room = most
  return found.map(({ section, families }) => {
    const shown = families.slice(0, room)
    room -= shown.length
    return { section, families: shown }
  })
}
