package redact

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

func nameLooksSecret(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
	if slices.Contains(harmlessVariableNames[:], name) {
		return false
	}
	for _, part := range secretNameParts {
		if strings.Contains(name, part) {
			return !strings.HasPrefix(name, "tokens") && !strings.HasSuffix(name, "tokens") && !strings.HasSuffix(name, "tokenspersecond") // a number of tokens
		}
	}
	return name == "auth" || name == "cookie" || name == "setcookie"
}

var secretNameParts = [...]string{
	"token", "secret", "passw", "passphrase", "credential", "apikey", "privatekey", "accesskey", "authorization",
}

// harmlessVariableNames contain a word such as token or secret, but their values are not secret.
var harmlessVariableNames = [...]string{
	"tokenurl", "tokentype", "secretname", "passwordfield", "credentialsfile", "continuationtoken", "nextpagetoken", "pagetoken",
	"progresstoken", "authorizationurl", "authorizationendpoint", "tokenendpoint", "tokens",
}

// looksSecretByLastWordAndValue reports whether a variable that [nameLooksSecret] misses is probably a credential. The name ends
// in a word such as PASS, or in one such as KEY if the value looks random. A path is not a credential.
func looksSecretByLastWordAndValue(name, value string) bool {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "./") {
		return false
	}
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "SSHPASS", "PASS", "PW", "PAT", "CRED", "CREDS", "COOKIE", "COOKIES", "JWT", "BEARER", "DSN":
		return true
	case "PWD": // the shell's PWD is a directory, not a password
		return len(words) > 1 && name != "OLDPWD"
	case "AUTH", "KEY", "SESSION", "WEBHOOK", "SIGNATURE", "SALT":
		return looksRandom(value)
	}
	return false
}

// looksRandom reports whether a value has at least 10 bytes, several letters and digits and no spaces, and is not a path.
func looksRandom(value string) bool {
	const enough = 10
	letters, digits := 0, 0
	if strings.Contains(value, "/") && strings.Contains(value, ".") {
		return false
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		case c <= ' ':
			return false
		}
	}
	return len(value) >= enough && letters > 2 && digits > 1
}

// knownValues finds values that are known to be secret, in plain text, URL encoding and base64.
type knownValues struct {
	words *wordFinder
	forms []knownValueForm
}

type knownValueForm struct {
	placeholderKind        string
	redactsWholeBase64Text bool // the value may be inside a longer base64 text, which is then redacted completely
}

func newKnownValues(environ, values []string) knownValues {
	k := knownValues{words: newWordFinder(false)}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if nameLooksSecret(name) || looksSecretByLastWordAndValue(name, value) {
			k.addPlainURLAndBase64Forms(value, upperSnakeCase(name))
		}
		if u, err := url.Parse(value); err == nil {
			password, _ := u.User.Password()
			k.addPlainURLAndBase64Forms(password, upperSnakeCase(name))
		}
	}
	for _, v := range values {
		k.addPlainURLAndBase64Forms(v, "VALUE")
	}
	return k
}

func upperSnakeCase(name string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(name) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

func (k *knownValues) addPlainURLAndBase64Forms(value, kind string) {
	if len(value) < minSecretTextBytes || isPlaceholder(value) {
		return
	}
	for _, plain := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
		k.addFormIfNew(plain, knownValueForm{placeholderKind: kind})
	}
	const enough = 8 // encoded parts with fewer bytes would match by chance
	if len(value) < enough {
		return
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			k.addFormIfNew(stableBase64Part(enc, value, shift), knownValueForm{placeholderKind: kind, redactsWholeBase64Text: true})
		}
	}
}

func (k *knownValues) addFormIfNew(text string, f knownValueForm) {
	if k.words.isWordAdded(text) {
		return
	}
	k.words.addWord(text, len(k.forms))
	k.forms = append(k.forms, f)
}

// stableBase64Part returns the part of value's base64 encoding that does not depend on the bytes before and after value. Base64 encodes
// groups of three bytes, so this part depends on where value begins in a group: shift is the number of other bytes before it in the group.
func stableBase64Part(enc *base64.Encoding, value string, shift int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("x", shift) + value))
	first := []int{0, 2, 3}[shift]        // number of characters that also depend on the preceding bytes
	whole := (shift + len(value)) * 8 / 6 // number of characters that do not depend on the following bytes
	return text[first:min(whole, len(text))]
}

func (k *knownValues) find(s string) []Finding {
	if len(k.forms) == 0 {
		return nil
	}
	var found []Finding
	k.words.forEachWordMatch(s, func(n, start, end int) {
		f := k.forms[n]
		if f.redactsWholeBase64Text {
			start, end = expandToWholeBase64Text(s, start, end)
		}
		found = append(found, Finding{Kind: f.placeholderKind, Start: start, End: end, Certain: true})
	})
	return found
}

func expandToWholeBase64Text(s string, start, end int) (from, to int) {
	for start > 0 && isBase64(s[start-1]) {
		start--
	}
	for end < len(s) && (isBase64(s[end]) || s[end] == '=') {
		end++
	}
	return start, end
}

func isBase64(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '+' || b == '/' || b == '-' || b == '_'
}

func isPlaceholder(v string) bool {
	if v == "" || v[0] == '$' || v[0] == '<' || strings.HasPrefix(v, "{{") || strings.HasPrefix(v, "REDACTED_") || strings.HasPrefix(v, "[redacted") {
		return true
	}
	return strings.Trim(v, string(v[0])) == "" || strings.Trim(v, "*.xX") == ""
}
