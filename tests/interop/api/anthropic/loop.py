"""The Anthropic SDK for Python: a loop with a tool, streamed and by its own runner; retries; errors."""
import os
import anthropic
from anthropic import beta_tool

client = anthropic.Anthropic(base_url=os.environ["API"], api_key="any", max_retries=2)
asked = "What is the weather in Oslo?"
tools = [{"name": "forecast", "description": "d", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]
history = [{"role": "user", "content": asked}]
with client.messages.stream(model="claude-sonnet-5-5", max_tokens=1000, messages=history, tools=tools) as stream:
    first = stream.get_final_message()
assert first.stop_reason == "tool_use", first
call = next(b for b in first.content if b.type == "tool_use")
assert (call.name, call.input) == ("forecast", {"city": "Oslo"}), call
history += [{"role": "assistant", "content": first.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "7 degrees"}]}]
last = client.messages.create(model="claude-sonnet-5-5", max_tokens=1000, messages=history, tools=tools)
assert last.content[0].text == "The forecast says: 7 degrees", last
assert client.messages.count_tokens(model="m", messages=history).input_tokens > 0


@beta_tool
def forecast(city: str) -> str:
    """Look the weather up.

    Args:
        city: where
    """
    return f"8 degrees in {city}"


final = client.beta.messages.tool_runner(
    model="claude-sonnet-5-5", max_tokens=1000, tools=[forecast], messages=[{"role": "user", "content": asked}]
).until_done()
assert final.content[0].text == "The forecast says: 8 degrees in Oslo", final

flaky = client.messages.create(model="m", max_tokens=100, messages=[{"role": "user", "content": "flaky"}])
assert flaky.content[0].text == "It went through at attempt 3.", flaky
try:
    client.messages.create(model="m", max_tokens=100, messages=[{"role": "user", "content": "denied"}])
    raise SystemExit("no error")
except anthropic.AuthenticationError as e:
    assert e.request_id and "no such key" in str(e), e
print("ok")
