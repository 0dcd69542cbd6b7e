// Chat completions through npm's openai: helpers, tools, structured outputs, errors.

import assert from 'node:assert/strict';

import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { QUESTION, URL, all, refused, run } from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const asked = { model, messages: QUESTION, temperature: 0 };
const textOf = (completion) => completion.choices[0].message.content;

// The model has nothing to decide about it, so each run says the same.
const Weather = z.object({ city: z.literal('Paris'), days: z.literal(3) });
const weather = zodFunction({ name: 'weather', description: 'Tells the weather.', parameters: Weather });
const named = { type: 'function', function: { name: 'weather' } };
const call = { ...asked, max_tokens: 120, tools: [weather], tool_choice: named, parallel_tool_calls: false };

const Step = z.object({
  name: z.enum(['walk', 'stop']),
  get after() {
    return z.union([Step, z.null()]);
  },
});
const Drawing = z.object({
  shape: z.union([
    z.object({ kind: z.literal('circle'), radius: z.number().int().min(1).max(9) }),
    z.object({ kind: z.literal('square'), side: z.number().int().min(1).max(9) }),
  ]),
  notes: z.array(z.boolean()).max(2),
  title: z.string().max(12).nullable(),
});

async function modelsAreListed() {
  const ids = (await all(client.models.list())).map((one) => one.id);
  assert.ok(ids.includes(model), ids);
  assert.equal((await client.models.retrieve(model)).object, 'model');
}

async function chunksMakeTheWholeAnswer() {
  const whole = await client.chat.completions.create(asked);
  assert.match(textOf(whole), /Paris/);
  const request = { ...asked, stream: true, stream_options: { include_usage: true } };
  const chunks = await all(await client.chat.completions.create(request));
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
  assert.equal(text, textOf(whole));
  assert.equal(chunks.at(-1).usage.total_tokens, whole.usage.total_tokens);
}

async function theStreamHelperGathersTheSame() {
  const whole = await client.chat.completions.create(asked);
  let text = '';
  const stream = client.chat.completions.stream(asked).on('content', (delta, snapshot) => {
    text += delta;
    assert.equal(snapshot, text);
  });
  const final = await stream.finalChatCompletion();
  assert.equal(textOf(final), textOf(whole));
  assert.equal(text, textOf(whole));
  assert.equal(final.choices[0].finish_reason, 'stop');
}

async function answersAreParsed() {
  const request = { ...asked, max_tokens: 200, response_format: zodResponseFormat(Drawing, 'drawing') };
  const { parsed } = (await client.chat.completions.parse(request)).choices[0].message;
  assert.deepEqual(Drawing.parse(parsed), parsed);
  const final = await client.chat.completions.stream(request).finalChatCompletion();
  const streamed = final.choices[0].message.parsed;
  assert.deepEqual(Drawing.parse(streamed), streamed);
}

async function aSchemaMayReferToItself() {
  const walk = '{"name":"walk","after":{"name":"stop","after":null}}';
  const messages = [
    { role: 'system', content: 'Repeat what the user says.' },
    { role: 'user', content: walk },
    { role: 'assistant', content: walk },
    { role: 'user', content: walk },
  ];
  const request = { ...asked, messages, max_tokens: 200, response_format: zodResponseFormat(Step, 'step') };
  const { parsed } = (await client.chat.completions.parse(request)).choices[0].message;
  assert.deepEqual(Step.parse(parsed), parsed);
}

async function callsAreParsedAndStreamed() {
  const whole = await client.chat.completions.parse(call);
  const [made] = whole.choices[0].message.tool_calls;
  assert.equal(whole.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual(Weather.parse(made.function.parsed_arguments), made.function.parsed_arguments);
  const done = [];
  const stream = client.chat.completions
    .stream(call)
    .on('tool_calls.function.arguments.done', (event) => done.push(event.arguments));
  const [streamed] = (await stream.finalChatCompletion()).choices[0].message.tool_calls;
  assert.deepEqual(streamed.function.parsed_arguments, made.function.parsed_arguments);
  assert.deepEqual(done, [streamed.function.arguments]);
}

/** The helper calls the function itself and asks again with what it returned. */
async function theToolRunnerCalls() {
  for (const stream of [false, true]) {
    const calls = [];
    const tool = zodFunction({
      name: 'weather',
      parameters: Weather,
      function: (given) => {
        calls.push(given);
        return { sky: 'sunny' };
      },
    });
    // A function that is named is called once, and the runner ends.
    const runner = client.chat.completions.runTools({ ...call, tools: [tool], stream });
    await runner.done();
    assert.equal(calls.length, 1, `called ${calls.length} times`);
    Weather.parse(calls[0]);
    const roles = runner.messages.map((message) => message.role);
    assert.deepEqual(roles, ['user', 'assistant', 'tool'], roles);
  }
}

async function aToolLoopEndsWithAnAnswer() {
  const first = (await client.chat.completions.create(call)).choices[0].message;
  const result = { role: 'tool', tool_call_id: first.tool_calls[0].id, content: '{"sky": "sunny"}' };
  const messages = [...QUESTION, first, result];
  const last = (await client.chat.completions.create({ ...call, messages, tool_choice: 'none', max_tokens: 40 })).choices[0];
  assert.ok(last.message.content, JSON.stringify(last));
  assert.ok(!last.message.tool_calls, JSON.stringify(last));
}

async function errorsBecomeTheClientsErrors() {
  const lost = await refused(OpenAI.NotFoundError, () => client.chat.completions.create({ ...asked, model: 'no' }));
  assert.deepEqual([lost.status, lost.code, lost.param], [404, 'model_not_found', 'model']);
  const wrong = await refused(OpenAI.BadRequestError, () =>
    client.chat.completions.create({ ...asked, temperature: 9, stream: true }),
  );
  assert.deepEqual([wrong.param, wrong.type], ['temperature', 'invalid_request_error']);
}

async function hangingUpLeavesTheServerFree() {
  const endless = { ...asked, temperature: 1, max_tokens: 4000, ignore_eos: true };
  const stream = await client.chat.completions.create({ ...endless, stream: true });
  let seen = 0;
  for await (const _ of stream) if (++seen === 4) break;
  await refused(OpenAI.APIConnectionTimeoutError, () => client.chat.completions.create(endless, { timeout: 700 }));
  const aborted = client.chat.completions.stream(endless);
  aborted.once('content', () => aborted.abort());
  await refused(OpenAI.APIUserAbortError, () => aborted.done());
  assert.match(textOf(await client.chat.completions.create(asked)), /Paris/);
}

await run(
  modelsAreListed,
  chunksMakeTheWholeAnswer,
  theStreamHelperGathersTheSame,
  answersAreParsed,
  aSchemaMayReferToItself,
  callsAreParsedAndStreamed,
  theToolRunnerCalls,
  aToolLoopEndsWithAnAnswer,
  errorsBecomeTheClientsErrors,
  hangingUpLeavesTheServerFree,
);
