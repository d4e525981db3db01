"""Ask claude what an issue is."""
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def triage(issue: int, options: ClaudeAgentOptions) -> str:
    result = None
    async for message in query(prompt=f"triage issue {issue}", options=options):
        if isinstance(message, ResultMessage):
            result = message
    if result is None or result.is_error:
        raise RuntimeError(f"no answer for issue {issue}: {result and result.result}")
    return result.result
