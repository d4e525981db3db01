"""LangChain: a model with a tool bound, its call run, the answer."""
import os
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool


@tool
def forecast(city: str) -> str:
    """Look the weather up."""
    return f"7 degrees in {city}"


model = ChatAnthropic(model="claude-sonnet-5-5", base_url=os.environ["API"], api_key="any", max_tokens=1000).bind_tools([forecast])
history = [HumanMessage("What is the weather in Oslo?")]
first = model.invoke(history)
assert first.tool_calls[0]["name"] == "forecast", first
history += [first, ToolMessage(forecast.invoke(first.tool_calls[0]["args"]), tool_call_id=first.tool_calls[0]["id"])]
last = model.invoke(history)
assert last.text == "The forecast says: 7 degrees in Oslo" or last.text() == "The forecast says: 7 degrees in Oslo", last
print("ok")
