// The Responses API through npm's openai.

import assert from 'node:assert/strict';

import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { FRANCE, URL, all, refused, run } from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const asked = { model, input: FRANCE, temperature: 0 };
// The model has nothing to decide about it, so each run says the same.
const Weather = z.object({ city: z.literal('Paris') });
const tool = zodResponsesFunction({ name: 'weather', description: 'Tells the weather.', parameters: Weather });
const call = {
  ...asked,
  max_output_tokens: 120,
  tools: [tool],
  tool_choice: { type: 'function', name: 'weather' },
  parallel_tool_calls: false,
};
const Drawing = z.object({
  shape: z.union([
    z.object({ kind: z.literal('circle'), radius: z.number().int().min(1).max(9) }),
    z.object({ kind: z.literal('square'), side: z.number().int().min(1).max(9) }),
  ]),
  title: z.string().max(12).nullable(),
});

async function anAnswerIsTheSameInEachWay() {
  const whole = await client.responses.create(asked);
  assert.equal(whole.status, 'completed');
  assert.match(whole.output_text, /Paris/);
  const events = await all(await client.responses.create({ ...asked, stream: true }));
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
  assert.equal(events[0].type, 'response.created');
  assert.equal(events.at(-1).type, 'response.completed');
  let text = '';
  const stream = client.responses.stream(asked).on('response.output_text.delta', (event) => {
    text += event.delta;
    assert.equal(event.snapshot, text);
  });
  const final = await stream.finalResponse();
  assert.equal(text, whole.output_text);
  assert.equal(final.output_text, whole.output_text);
}

async function answersAreParsed() {
  const request = { ...asked, max_output_tokens: 200, text: { format: zodTextFormat(Drawing, 'drawing') } };
  const { output_parsed: parsed } = await client.responses.parse(request);
  assert.deepEqual(Drawing.parse(parsed), parsed);
  const final = await client.responses.stream(request).finalResponse();
  assert.deepEqual(Drawing.parse(final.output_parsed), final.output_parsed);
}

async function aToolLoopEndsWithAnAnswer() {
  const first = await client.responses.parse(call);
  const [made] = first.output.filter((item) => item.type === 'function_call');
  assert.deepEqual(Weather.parse(made.parsed_arguments), made.parsed_arguments);
  const streamed = await client.responses.stream(call).finalResponse();
  const [again] = streamed.output.filter((item) => item.type === 'function_call');
  assert.deepEqual(again.parsed_arguments, made.parsed_arguments);
  // The helper's own field is not one of the API's.
  const items = first.output.map(({ parsed_arguments: _, ...item }) => item);
  const result = { type: 'function_call_output', call_id: made.call_id, output: '{"sky": "sunny"}' };
  const input = [{ role: 'user', content: FRANCE }, ...items, result];
  const last = await client.responses.create({ ...call, input, tool_choice: 'none', max_output_tokens: 40 });
  assert.ok(last.output_text, JSON.stringify(last));
}

async function errorsBecomeTheClientsErrors() {
  const lost = await refused(OpenAI.NotFoundError, () => client.responses.create({ ...asked, model: 'no' }));
  assert.deepEqual([lost.status, lost.code, lost.param], [404, 'model_not_found', 'model']);
  const wrong = await refused(OpenAI.BadRequestError, () =>
    client.responses.create({ ...asked, previous_response_id: 'resp_1' }),
  );
  assert.equal(wrong.param, 'previous_response_id');
}

await run(anAnswerIsTheSameInEachWay, answersAreParsed, aToolLoopEndsWithAnAnswer, errorsBecomeTheClientsErrors);
