package redact

import "strings"

// Lengths of the parts of a Discord token: the id of the bot in base64, a time and
// a signature.
const (
	leastBotID, mostBotID         = 23, 30
	leastTime, mostTime           = 5, 7
	leastSignature, mostSignature = 27, 45
)

// findDiscordTokens finds the tokens of Discord bots. They have no keyword but a fixed
// form: three parts separated by dots.
func findDiscordTokens(text string) []Finding {
	var found []Finding
	for from := 0; ; {
		dot := strings.IndexByte(text[from:], '.')
		if dot < 0 {
			return found
		}
		dot += from
		from = dot + 1
		start := dot
		for start > 0 && inToken(text[start-1]) {
			start--
		}
		second := tokenEnd(text, dot+1)
		if !between(dot-start, leastBotID, mostBotID) || !between(second-dot-1, leastTime, mostTime) ||
			strings.IndexByte("MNO", text[start]) < 0 || second == len(text) || text[second] != '.' {
			continue
		}
		end := tokenEnd(text, second+1)
		if signature := text[second+1 : end]; between(len(signature), leastSignature, mostSignature) && strings.ContainsAny(text[start:end], "0123456789") {
			found = append(found, Finding{Kind: "DISCORD_TOKEN", Start: start, End: end, Certain: true})
			from = end
		}
	}
}

// tokenEnd returns the end of a run of URL-safe base64 characters.
func tokenEnd(text string, i int) int {
	for i < len(text) && inToken(text[i]) {
		i++
	}
	return i
}

func inToken(b byte) bool { return isBase64(b) && b != '+' && b != '/' }

func between(n, least, most int) bool { return n >= least && n <= most }
