"""LiteLLM: messages in OpenAI's form, a call and its result."""
import json
import os
import litellm

litellm.telemetry = False
tools = [{"type": "function", "function": {"name": "forecast", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
history = [{"role": "user", "content": "What is the weather in Oslo?"}]


def ask():
    return litellm.completion(model="anthropic/claude-opus-5-5", api_base=os.environ["API"], api_key="any", messages=history, tools=tools, max_tokens=1000).choices[0].message


first = ask()
call = first.tool_calls[0]
assert call.function.name == "forecast" and json.loads(call.function.arguments) == {"city": "Oslo"}, first
history += [{"role": "assistant", "content": first.content, "tool_calls": [{"id": call.id, "type": "function", "function": {"name": "forecast", "arguments": call.function.arguments}}]},
            {"role": "tool", "tool_call_id": call.id, "content": "7 degrees"}]
last = ask()
assert last.content == "The forecast says: 7 degrees", last
print("ok")
