// What the scripts here share: the server under test and how checks are run.
//
// Each script asks a running server, whose URL is in NALA_URL, by an official
// client. A check is an async function that asserts. All of a script's checks are
// run, so that one run tells everything that is wrong.

import assert from 'node:assert/strict';

export const URL = process.env.NALA_URL ?? assert.fail('NALA_URL is not set');
export const FRANCE = 'What is the capital of France? Answer with one word.';
export const QUESTION = [{ role: 'user', content: FRANCE }];

/** Runs the checks; prints `ok` if all hold, else what failed, and ends with 1. */
export async function run(...checks) {
  let failed = 0;
  for (const check of checks) {
    try {
      await check();
    } catch (error) {
      failed += 1;
      console.error(`${check.name} failed:`, error);
    }
  }
  if (failed > 0) {
    console.error(`${failed} of ${checks.length} checks failed`);
    process.exit(1);
  }
  console.log('ok');
}

/** Gives all that an async iterable yields. */
export async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** Asserts that `ask()` is refused with an error of `kind`; gives it. */
export async function refused(kind, ask) {
  try {
    await ask();
  } catch (error) {
    assert.ok(error instanceof kind, `${error?.constructor?.name} instead of ${kind.name}: ${error}`);
    return error;
  }
  return assert.fail(`no ${kind.name}: it was accepted`);
}
