// Anthropic's Messages API through npm's @anthropic-ai/sdk.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';

import { QUESTION, URL, all, refused, run } from './checks.mjs';

const client = new Anthropic({ baseURL: URL, apiKey: 'none', maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const asked = { model, messages: QUESTION, max_tokens: 64, temperature: 0 };
// The model has nothing to decide about it, so each run says the same.
const Weather = z.object({ city: z.literal('Paris') });
const tool = {
  name: 'weather',
  description: 'Tells the weather.',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Paris'] } },
    required: ['city'],
    additionalProperties: false,
  },
};
const named = { type: 'tool', name: 'weather', disable_parallel_tool_use: true };
const call = { ...asked, max_tokens: 120, tools: [tool], tool_choice: named };
const said = (message) => message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
const callsOf = (message) => message.content.filter((block) => block.type === 'tool_use');

async function anAnswerIsTheSameInEachWay() {
  const whole = await client.messages.create(asked);
  assert.deepEqual([whole.type, whole.role, whole.model, whole.stop_reason], ['message', 'assistant', model, 'end_turn']);
  assert.match(said(whole), /Paris/);
  const events = await all(await client.messages.create({ ...asked, stream: true }));
  const kinds = events.map((event) => event.type).filter((kind) => kind !== 'ping' && kind !== 'content_block_delta');
  const order = ['message_start', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop'];
  assert.deepEqual(kinds, order);
  let text = '';
  const stream = client.messages.stream(asked).on('text', (delta, snapshot) => {
    text += delta;
    assert.equal(snapshot, text);
  });
  const final = await stream.finalMessage();
  assert.equal(text, said(whole));
  assert.deepEqual(final.content, whole.content);
  assert.equal(final.stop_reason, 'end_turn');
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
}

async function tokensAreCounted() {
  const counted = await client.messages.countTokens({ model, messages: QUESTION });
  const { usage } = await client.messages.create(asked);
  assert.equal(counted.input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
}

async function answersAreParsed() {
  const Drawing = z.object({
    shape: z.union([
      z.object({ kind: z.literal('circle'), radius: z.number().int() }),
      z.object({ kind: z.literal('square'), side: z.enum(['short', 'long']) }),
    ]),
    country: z.enum(['France', 'Italy']),
  });
  const request = { ...asked, max_tokens: 200, output_config: { format: zodOutputFormat(Drawing) } };
  const { parsed_output: parsed } = await client.messages.parse(request);
  assert.deepEqual(Drawing.parse(parsed), parsed);
}

async function aToolLoopEndsWithAnAnswer() {
  const first = await client.messages.create(call);
  assert.equal(first.stop_reason, 'tool_use');
  const [made] = callsOf(first);
  Weather.parse(made.input);
  const stream = client.messages.stream(call);
  let json = '';
  stream.on('inputJson', (delta) => (json += delta));
  const [streamed] = callsOf(await stream.finalMessage());
  assert.deepEqual(streamed.input, made.input);
  assert.deepEqual(JSON.parse(json), made.input);
  const result = { type: 'tool_result', tool_use_id: made.id, content: 'sunny' };
  const messages = [...QUESTION, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
  const last = await client.messages.create({ ...call, messages, tool_choice: { type: 'none' }, max_tokens: 40 });
  assert.ok(said(last), JSON.stringify(last));
}

/** The helper calls the function itself and asks again with what it returned. */
async function theToolRunnerCalls() {
  const calls = [];
  const runnable = betaZodTool({
    name: 'weather',
    description: 'Tells the weather.',
    inputSchema: Weather,
    run: (given) => {
      calls.push(given);
      return 'sunny';
    },
  });
  // A call that is forced is forced each time, so the runner is told when to end.
  const runner = client.beta.messages.toolRunner({ ...call, tools: [runnable], max_iterations: 2 });
  const turns = await all(runner);
  assert.equal(turns.length, 2, JSON.stringify(turns));
  assert.ok(calls.length >= 1, 'the function was not called');
  calls.forEach((given) => Weather.parse(given));
}

async function errorsBecomeTheClientsErrors() {
  const lost = await refused(Anthropic.NotFoundError, () => client.messages.create({ ...asked, model: 'no' }));
  assert.equal(lost.error.error.type, 'not_found_error', JSON.stringify(lost.error));
  const wrong = await refused(Anthropic.BadRequestError, () => client.messages.create({ ...asked, temperature: 9 }));
  assert.equal(wrong.error.error.type, 'invalid_request_error', JSON.stringify(wrong.error));
}

async function hangingUpLeavesTheServerFree() {
  const messages = [{ role: 'user', content: 'Tell a long story.' }];
  const stream = client.messages.stream({ ...asked, messages, max_tokens: 4000 });
  stream.once('text', () => stream.abort());
  await refused(Anthropic.APIUserAbortError, () => stream.done());
  assert.match(said(await client.messages.create(asked)), /Paris/);
}

await run(
  anAnswerIsTheSameInEachWay,
  tokensAreCounted,
  answersAreParsed,
  aToolLoopEndsWithAnAnswer,
  theToolRunnerCalls,
  errorsBecomeTheClientsErrors,
  hangingUpLeavesTheServerFree,
);
