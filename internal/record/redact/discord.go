package redact

import "strings"

// Lengths of the parts of a Discord token: the id of the bot in base64, a time and a signature.
const (
	minDiscordIDLength, maxDiscordIDLength               = 23, 30
	minDiscordTimeLength, maxDiscordTimeLength           = 5, 7
	minDiscordSignatureLength, maxDiscordSignatureLength = 27, 45
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
		for start > 0 && isTokenByte(text[start-1]) {
			start--
		}
		second := tokenEnd(text, dot+1)
		if !inRange(dot-start, minDiscordIDLength, maxDiscordIDLength) || !inRange(second-dot-1, minDiscordTimeLength, maxDiscordTimeLength) ||
			strings.IndexByte("MNO", text[start]) < 0 || second == len(text) || text[second] != '.' {
			continue
		}
		end := tokenEnd(text, second+1)
		if signature := text[second+1 : end]; inRange(len(signature), minDiscordSignatureLength, maxDiscordSignatureLength) && strings.ContainsAny(text[start:end], "0123456789") {
			found = append(found, Finding{Kind: "DISCORD_TOKEN", Start: start, End: end, Certain: true})
			from = end
		}
	}
}

func tokenEnd(text string, i int) int {
	for i < len(text) && isTokenByte(text[i]) {
		i++
	}
	return i
}

func isTokenByte(b byte) bool { return isBase64(b) && b != '+' && b != '/' }

func inRange(n, minimum, maximum int) bool { return n >= minimum && n <= maximum }
