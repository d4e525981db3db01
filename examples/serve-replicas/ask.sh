#!/bin/sh
# Usage: ask.sh PROMPT. Asks the Messages API up to three times, and prints the answer.
for attempt in 1 2 3; do
  answer=$(curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "content-type: application/json" -H "anthropic-version: 2023-06-01" -H "x-api-key: any" \
    -d "{\"model\":\"claude-opus-5-5\",\"max_tokens\":100,\"messages\":[{\"role\":\"user\",\"content\":\"$1\"}]}" |
    jq -er '.content[0].text') && echo "attempt $attempt: $answer" && exit 0
done
echo "no answer to \"$1\" after $attempt attempts" >&2
exit 1
