"""Ask claude what an issue is."""
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def triage(issue: int, options: ClaudeAgentOptions) -> str:
    async for message in query(prompt=f"triage issue {issue}", options=options):
        if isinstance(message, ResultMessage):
            if message.is_error:
                raise RuntimeError(f"no answer for issue {issue}: {message.result}")
            return message.result
    raise RuntimeError(f"no answer for issue {issue}")
