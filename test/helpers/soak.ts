// Counts by purpose: the default run has as many rounds as have found faults, a soak has all of them (`npm run soak`).

/** Whether this is a soak. */
export const soak: boolean = process.env.TEST_SOAK === '1'

/** For `skip`, of a test that is too long or too large for the default run. */
export const onlyInSoak: string | false = soak
  ? false
  : 'full counts and whole artefacts are tried by `npm run soak`'
