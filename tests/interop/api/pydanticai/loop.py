"""pydantic-ai: an agent that runs its own tool."""
import os
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

client = AsyncAnthropic(base_url=os.environ["API"], api_key="any")
agent = Agent(AnthropicModel("claude-opus-5-5", provider=AnthropicProvider(anthropic_client=client)))


@agent.tool_plain
def forecast(city: str) -> str:
    return f"7 degrees in {city}"


result = agent.run_sync("What is the weather in Oslo?")
assert result.output.endswith("The forecast says: 7 degrees in Oslo"), result.output
print("ok")
