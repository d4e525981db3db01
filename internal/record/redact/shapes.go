package redact

//go:generate sh -c "go mod download github.com/zricethezav/gitleaks/v8@v8.30.1 && go run ./rules $(go env GOMODCACHE)/github.com/zricethezav/gitleaks/v8@v8.30.1/config/gitleaks.toml"

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// additionalRules match forms of secrets that gitleaks lacks, or matches too strictly for records.
var additionalRules = [...]rule{
	{id: "anthropic-key", expr: `\bsk-ant-[A-Za-z0-9_-]{6,}`, keywords: "sk-ant-"},
	{id: "secret-key", expr: `\bsk-[A-Za-z0-9_-]{8,}`, keywords: "sk-"},
	{id: "github-token", expr: `\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,})`, keywords: "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_"},
	{id: "gitlab-token", expr: `\bgl(?:pat|ptt|rt|dt|soat|ffct|imt|cbt)-[A-Za-z0-9_-]{16,}`, keywords: "glpat-|glptt-|glrt-|gldt-|glsoat-|glffct-|glimt-|glcbt-"},
	{id: "slack-token", expr: `\bxox[abeoprs]-[A-Za-z0-9-]{8,}`, keywords: "xox"},
	{id: "aws-access-key", expr: `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`, keywords: "akia|asia|abia|acca"},
	{id: "google-key", expr: `\bAIza[A-Za-z0-9_-]{30,}`, keywords: "aiza"},
	{id: "jwt", expr: `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`, keywords: "eyj"},
	{id: "private-key", expr: `-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[ A-Z0-9_-]{0,100}-----|\z)`, keywords: "-----begin"},
	{id: "url-password", expr: `\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@"'<>` + "`" + `]*:([^\s/@"'<>` + "`" + `]+)@`, keywords: "://", usesContext: true},
	{id: "url-token", expr: `[?&;#](?i:[a-z0-9_.-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|credential|signature)|sig|key|auth|code)=([^\s&#"'<>;` + "`" + `]{4,})`, keywords: "token=|secret=|passwd=|password=|api_key=|apikey=|api-key=|access_key=|accesskey=|credential=|signature=|sig=|key=|auth=|code=", usesContext: true},
	{id: "bearer", expr: `(?i)\bbearer\s+([A-Za-z0-9._~+/-]{8,}=*)`, keywords: "bearer", usesContext: true},
	{id: "authorization-header", expr: `(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest|apikey)\s+([^\s"'\\,;]{6,})`, keywords: "authorization", usesContext: true},
	{id: "key-header", expr: `(?i)\b(?:x-(?:[a-z0-9]+-)*(?:(?:api)?key|token|secret)|api-key|private-token|cookie|set-cookie)["']?:[ \t]*["']?([^\s"'\\,]{6,})`, keywords: "-key|-apikey|-token|-secret|api-key|cookie", usesContext: true},
	{id: "flag-value", expr: `(?i)(?:^|[\s"'\[,])--?(?:[a-z0-9]+-)*(?:token|secret|password|passwd|passphrase|api-?key|access-?key|credentials?|auth|bearer)(?:=|\s+|"\s*,\s*")["']?([^\s"'\\-][^\s"'\\]{3,})`, keywords: "token|secret|passw|passphrase|api-key|apikey|access-key|accesskey|credential|-auth|-bearer", usesContext: true},
	{id: "user-password", expr: `(?:^|[\s"'])(?:-u|--user|--proxy-user)(?:=|\s+|\s*)["']?[^\s:"'/=$-][^\s:"'/]*:([^\s"'@/]{3,})`, keywords: " -u|--user|--proxy-user", usesContext: true},
	{id: "cookie-header", expr: `(?i)\bcookie["']?:[ \t]*["']?[^\s"'=;]+=([^"'\r\n\\]{3,})`, keywords: "cookie", usesContext: true},
	{id: "cookie-option", expr: `(?:^|[\s"'])(?:-b\s+|--cookie(?:=|\s+))(?:"[^"=;]+=([^"]+)|'[^'=;]+=([^']+)|[^\s"'=;-][^\s"'=;]*=([^\s"'|&]+))`, keywords: " -b|--cookie", usesContext: true, isCommandOption: true},
	{id: "curl-option", expr: `\bcurl\b[^\n|;&]*?\s-[a-zA-Z]*(?:b\s*["']?[^\s"'=;-]+=|u\s*["']?[^\s"':$-]+:)([^\s"'|&]+)`, keywords: "curl", usesContext: true, isCommandOption: true},
	{id: "docker-token", expr: `\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{8,}`, keywords: "dckr_"},
	{id: "telegram-token", expr: `(?:\b|bot)([0-9]{6,12}:A[A-Za-z0-9_-]{33,36})`, keywords: ":a"},
	{id: "discord-webhook", expr: `\bapi(?:/v[0-9]+)?/webhooks/[0-9]+/([A-Za-z0-9_-]{20,})`, keywords: "/webhooks/"},
	{id: "connection-string", expr: `(?i)\b(?:host|server|data source|user|username|user id|uid|dbname|database)\s*=[^\n"(){}]{1,48}?\b(?:password|pwd) ?=\s*'?([^\s'";(){}]{2,})|\b(?:password|pwd) ?=\s*'?([^\s'";(){}]{2,})'?[;\s]+(?:host|server|user|uid|dbname|database)\s*=`, keywords: "password=|password =|pwd=|pwd =", usesContext: true},
	{id: "pgpass", expr: `(?m)(?:^|[\s"'>]|\\n)[^\s:"'/]+:(?:[0-9]{1,5}|\*):[^\s:"'/]+:[^\s:"'/]+:((?:\\[:\\]|[^\s"'\\:]){3,})`, keywords: "pgpass|:5432:|:*:"},
	{id: "netrc", expr: `(?i)\b(?:machine` + netrcSeparatorPattern + `[^\s\\]{1,100}|default` + netrcSeparatorPattern + `login` + netrcSeparatorPattern + `[^\s\\]{1,100})` + netrcSeparatorPattern + `(?:(?:login|account)` + netrcSeparatorPattern + `[^\s\\]{1,100}` + netrcSeparatorPattern + `){0,2}password` + netrcSeparatorPattern + `["']?([^\s"'\\]{2,})`, keywords: "machine|login"},
	{id: "sshpass", expr: `\bsshpass\s+(?:-[vP]\S*\s+(?:[^\s-]\S*\s+)?)*-p\s*(?:"([^"]+)"|'([^']+)'|([^\s"'|;&]+))`, keywords: "sshpass", isCommandOption: true},
	{id: "client-password", expr: `\b(?:(?:mysql|mariadb)[a-z-]*\b[^\n|;&]*?\s-p|redis-cli\b[^\n|;&]*?\s-a\s+|docker\s+login\b[^\n|;&]*?\s-p\s+|openssl\b[^\n|;&]*?\s-(?:k\s+|pass(?:in|out)?\s+pass:)|aws\s+configure\s+set\s+[^\n|;&]*?(?:secret_access_key|session_token)\s+` +
		`|(?:podman|nerdctl|buildah|skopeo|crane|helm|oc|az|cf|ibmcloud|twine|poetry|expo|eas)\s(?:[^\n|;&]*?\s)?(?:login|upload|publish)\b[^\n|;&]*?\s-p(?:\s+|=)|mongo[a-z]*\s[^\n|;&]*?\s-p\s*|(?:un)?zip\s[^\n|;&]*?-P\s+|7z\s[^\n|;&]*?\s-p` +
		`|ldap[a-z]+\s[^\n|;&]*?-w\s+|sqlcmd\s[^\n|;&]*?-P\s*|(?:plink|pscp|psftp)\s[^\n|;&]*?-pw\s+|\bhttps?\s[^\n|;&]*?(?:-a|--auth)(?:\s+|=)[^\s:]+:|[wx]?freerdp\S*\s[^\n|;&]*?/p:|smbclient\s[^\n|;&]*?-U\s+[^\s%]+%|lftp\s[^\n|;&]*?-u\s+[^\s,]+,|sqlplus\s+(?:-\S+\s+)*[^\s/@]+/|(?:keytool|jarsigner)\s[^\n|;&]*?-[a-z]*pass\s+` +
		`|tailscale\s[^\n|;&]*?--auth-?key(?:\s+|=)|gh\s+secret\s+set\s[^\n|;&]*?(?:-b|--body)(?:\s+|=)|kubectl\s[^\n|;&]*?--from-literal=[^\s=]+=)(?:"([^"]+)"|'([^']+)'|([^\s"'|;&]+))`, keywords: "mysql|mariadb|redis-cli|docker|openssl|configure|login|upload|publish|plink|pscp|psftp|http -|https -|freerdp|mongo|zip|ldap|sqlcmd|smbclient|lftp|sqlplus|keytool|jarsigner|tailscale|secret|kubectl|7z ", usesContext: true, isCommandOption: true},
	{id: "login-operand", expr: commandStartPattern + `(?:vault\s+(?:login|unwrap|operator\s+unseal|token\s+(?:lookup|renew|revoke))(?:\s+-[^\s|;&]+)*(?:(?:\s+\w+=\S+)*?\s+(?:token|password)=|\s+)|(?:(?:cargo|wandb)\s+login|snyk\s+auth|ngrok\s+(?:config\s+add-)?authtoken|bw\s+unlock|rclone\s+obscure|poetry\s+config\s+(?:\S*token\S*|http-basic\S*\s+\S+)|doppler\s+configure\s+set\s+token` +
		`|(?:bw\s+login|cf\s+auth|rabbitmqctl\s+(?:add_user|change_password|authenticate_user)|htpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+\S+)\s+[^\s-]\S*)(?:\s+-[^\s|;&]+)*\s+|(?:npm|yarn|pnpm)\s+(?:config\s+)?set\s+[^\s=]*(?:_authToken|_password|_auth|npmAuthToken|npmAuthIdent)(?:\s+|=))(?:"([^"\\]+)"|'([^'\\]+)'|([^\s"'|;&<>()$=\\-][^\s"'|;&<>()=\\]{2,}=*))`, keywords: "vault|cargo|wandb|snyk|ngrok|unlock|rclone|doppler|poetry|bw login|cf auth|rabbitmqctl|htpasswd|_auth|_password|npmauth", usesContext: true, isCommandOption: true},
	{id: "password-input", expr: `(?:\b(?:echo|printf)\s{1,4}(?:-[neE]{1,3}\s{1,3}|["']?%s(?:\\n)?["']?\s{1,3}){0,3}(?:"([^"\\]+)"|'([^'\\]+)'|([^\s"'|;&<>()$\\-][^\s"'|;&<>()\\]*))\s*\|[^|\n;&]*?(?:--(?:password|token|api-key)-stdin|--with-token|\blogin -(?:\s|["']|$)|\bsudo\s+-[a-zA-Z]*S|\bchpasswd|--passphrase-fd\s+0|\bpasswd\s+--stdin)` +
		`|(?:--(?:password|token|api-key)-stdin|--with-token|\blogin -|\bsudo\s+-[a-zA-Z]*S\b[^\n|;&<]*?)\s*<<<\s*(?:"([^"\\]+)"|'([^'\\]+)'|([^\s"'|;&<>()$\\]+)))`, keywords: "-stdin|--with-token|login -|sudo|chpasswd|passphrase-fd|--stdin", usesContext: true},

	{id: "assignment", expr: `\b(?:[A-Z0-9]+_)*(?:SSHPASS|MYSQL_PWD|PGPASSWORD|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?|SECRET_?KEY)["']?\s*[:=]\s*["']?([^\s"'\\` + "`" + `;,&|]{6,})`, keywords: "token|secret|passw|passphrase|key|credential|sshpass|mysql_pwd", isGuess: true},
	{id: "password", expr: `(?i)(?:password|passwd|passphrase|client_?secret|api_?key|auth_?token|access_?token|refresh_?token|secret_?key)["']?\s*(?::|=|:=|=>)\s*["']([^\s"'\\]{6,})["']`, keywords: "passw|passphrase|secret|key|token", isGuess: true},
}

// commandStartPattern matches the beginning of a command in a script or a JSON text.
const commandStartPattern = `(?:^|[\n;&|("']\s{0,9}|\\n\s{0,9}|(?:[;\n]\s*(?:then|do)|\bsudo|\bexec|\benv(?:\s+\w+=\S*)*|\btime|\bnohup|\bnpx|\btimeout\s+\S+)\s+)`

// netrcSeparatorPattern separates the words of a netrc file, even if a shell or JSON escapes the line ends.
const netrcSeparatorPattern = `(?:\s|\\[nt]){1,9}`

// secretFormFinder finds secrets by their form. Expressions are compiled when their keywords first occur.
type secretFormFinder struct {
	rules  []rule
	words  *wordFinder
	byWord []keyword

	mu         sync.Mutex
	exprs      []*regexp.Regexp // expressions by rule; nil means not compiled yet
	exclusions *falsePositivePatterns
}

func newSecretFormFinder() *secretFormFinder {
	s := &secretFormFinder{rules: slices.Concat(additionalRules[:], maintained[:]), words: newWordFinder(true)}
	for i, r := range s.rules {
		for word := range strings.SplitSeq(r.keywords, "|") {
			for _, part := range padKeywordToThreeBytesWithNeighbours(word) {
				s.words.addWord(part, len(s.byWord))
				s.byWord = append(s.byWord, keyword{i, r.choosePrecheckForKeyword(word)})
			}
		}
	}
	s.exprs = make([]*regexp.Regexp, len(s.rules))
	return s
}

// padKeywordToThreeBytesWithNeighbours returns the words to search for. A keyword shorter than three bytes is combined with every
// byte that may adjoin it.
func padKeywordToThreeBytesWithNeighbours(keyword string) (searchWords []string) {
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	if len(keyword) >= 3 {
		return []string{keyword}
	}
	before := map[string]string{"q~": digits, ":a": digits}
	after := map[string]string{"ey": letters + digits, "s.": letters + digits, "sk": digits + "abcdef"}
	var words []string
	for _, c := range before[keyword] {
		words = append(words, string(c)+keyword)
	}
	for _, c := range after[keyword] {
		words = append(words, keyword+string(c))
	}
	return words
}

// candidateSpans returns, by rule number, the parts of a text that the rule might match, in order, without overlaps.
func (s *secretFormFinder) candidateSpans(text string) map[int][][2]int {
	var spans map[int][][2]int
	s.words.forEachWordMatch(text, func(word, start, end int) {
		k := s.byWord[word]
		if !k.precheck.canRuleMatchAround(text, start, end) {
			return
		}
		if spans == nil {
			spans = map[int][][2]int{}
		}
		before, behind := k.precheck.contextLength()
		n, from, to := k.rule, max(start-before, 0), min(end+behind, len(text))
		if list := spans[n]; len(list) > 0 && from <= list[len(list)-1][1] {
			list[len(list)-1][1] = max(to, list[len(list)-1][1])
			return
		}
		spans[n] = append(spans[n], [2]int{from, to})
	})
	return spans
}

func (s *secretFormFinder) find(text string) []Finding {
	return append(s.findWithRules(text, func(rule) bool { return true }), findDiscordTokens(text)...)
}

func (s *secretFormFinder) findWithRules(text string, chosen func(rule) bool) []Finding {
	spans := s.candidateSpans(text)
	var found []Finding
	for _, n := range slices.Sorted(maps.Keys(spans)) {
		if !chosen(s.rules[n]) {
			continue
		}
		for _, span := range spans[n] {
			found = append(found, s.findRuleMatches(text, n, span)...)
		}
	}
	return found
}

func (s *secretFormFinder) findRuleMatches(text string, ruleIndex int, span [2]int) []Finding {
	r, part := s.rules[ruleIndex], text[span[0]:span[1]]
	var found []Finding
	for _, m := range s.compiledPattern(ruleIndex).FindAllStringSubmatchIndex(part, -1) {
		if m[1] == len(part) && span[1] < len(text) { // the end of the part may have cut off the match
			const more = 64 << 10
			return s.findRuleMatches(text, ruleIndex, [2]int{span[0], min(span[1]+more, len(text))})
		}
		start, end := r.secretSpan(m)
		secret := part[start:end]
		if isPlaceholder(secret) || entropy(secret) < r.entropy {
			continue
		}
		if r.isGuess && s.isGuessFalsePositive(r, part[startOfNameContaining(part, m[0]):m[1]], secret) || r.id == "bearer" && isProseOrParameterAfterBearer(secret) {
			continue
		}
		found = append(found, Finding{Kind: upperSnakeCase(r.id), Start: span[0] + start, End: span[0] + end, Certain: !r.isGuess && (!r.usesContext || !looksLikeWordOrExample(secret))})
	}
	return found
}

// isProseOrParameterAfterBearer reports whether the word after "bearer" is a usual word or the parameter of an HTTP
// challenge, and therefore not a token.
func isProseOrParameterAfterBearer(wordAfterBearer string) bool {
	return wordAfterBearer == "resource_metadata=" || slices.ContainsFunc([]string{"authenti", "authori", "credential", "assessment", "scheme", "token", "security", "challenge", "instrument"}, func(about string) bool {
		return strings.HasPrefix(strings.ToLower(wordAfterBearer), about) && looksLikeWordOrExample(wordAfterBearer)
	})
}

// looksLikeWordOrExample reports whether a value looks like a word (letters of one case) or an example such as YOUR_TOKEN.
func looksLikeWordOrExample(value string) bool {
	const longestWord = 24
	lower, upper := false, false
	for i := range len(value) {
		c := value[i]
		lower, upper = lower || c >= 'a' && c <= 'z', upper || i > 0 && c >= 'A' && c <= 'Z'
		if c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' {
			return false
		}
	}
	return len(value) <= longestWord && (!lower || !upper)
}

func (r rule) secretSpan(match []int) (start, end int) {
	if r.group > 0 {
		return match[2*r.group], match[2*r.group+1]
	}
	for i := 2; i < len(match); i += 2 {
		if match[i] < match[i+1] {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}

func (s *secretFormFinder) compiledPattern(ruleIndex int) *regexp.Regexp {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exprs[ruleIndex] == nil {
		expr := s.rules[ruleIndex].expr
		if rest, ok := strings.CutPrefix(expr, gitleaksPatternOfNameBeforeKeyword); ok {
			expr = "(?i)" + rest
		}
		s.exprs[ruleIndex] = regexp.MustCompile(expr)
	}
	return s.exprs[ruleIndex]
}

// gitleaksPatternOfNameBeforeKeyword is the beginning of the gitleaks rules for a name with a value. It matches the part
// of the name before the keyword. It is removed from the expressions, because matching it would take ten times as long
// as the rest of a rule. [startOfNameContaining] finds this part of the name instead.
const gitleaksPatternOfNameBeforeKeyword = `(?i)[\w.-]{0,50}?`

func startOfNameContaining(text string, keywordStart int) int {
	const longest = 50
	from := keywordStart
	for from > 0 && keywordStart-from < longest && (isLetterOrDigit(text[from-1]) || text[from-1] == '.' || text[from-1] == '-') {
		from--
	}
	return from
}

type falsePositivePatterns struct {
	match *regexp.Regexp
	words []string
}

// isGuessFalsePositive reports whether a match of a guessing rule is not a secret, but for example a variable, a call or a word.
func (s *secretFormFinder) isGuessFalsePositive(guessingRule rule, matchedText, secret string) bool {
	if strings.ContainsAny(secret, "(){}[]<>$") || !strings.ContainsAny(secret, "0123456789") && guessingRule.id != "password" {
		return true
	}
	if guessingRule.id != "generic-api-key" {
		return false
	}
	s.mu.Lock()
	if s.exclusions == nil {
		s.exclusions = &falsePositivePatterns{match: regexp.MustCompile(harmlessMatch), words: strings.Fields(harmlessWords)}
	}
	g := s.exclusions
	s.mu.Unlock()
	folded := strings.ToLower(secret)
	return g.match.MatchString(matchedText) || slices.ContainsFunc(g.words, func(w string) bool { return strings.Contains(folded, w) })
}

// entropy returns Shannon's entropy in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	sum := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// Lengths of the parts of a Discord token: the id of the bot in base64, a time and a signature.
const (
	minDiscordTokenIDBytes, maxDiscordTokenIDBytes               = 23, 30
	minDiscordTokenTimeBytes, maxDiscordTokenTimeBytes           = 5, 7
	minDiscordTokenSignatureBytes, maxDiscordTokenSignatureBytes = 27, 45
)

// findDiscordTokens finds the tokens of Discord bots, which have no keyword: three parts separated by dots.
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
		for start > 0 && isDiscordTokenByte(text[start-1]) {
			start--
		}
		second := endOfDiscordTokenPart(text, dot+1)
		if !inRange(dot-start, minDiscordTokenIDBytes, maxDiscordTokenIDBytes) || !inRange(second-dot-1, minDiscordTokenTimeBytes, maxDiscordTokenTimeBytes) ||
			strings.IndexByte("MNO", text[start]) < 0 || second == len(text) || text[second] != '.' {
			continue
		}
		end := endOfDiscordTokenPart(text, second+1)
		if signature := text[second+1 : end]; inRange(len(signature), minDiscordTokenSignatureBytes, maxDiscordTokenSignatureBytes) && strings.ContainsAny(text[start:end], "0123456789") {
			found = append(found, Finding{Kind: "DISCORD_TOKEN", Start: start, End: end, Certain: true})
			from = end
		}
	}
}

func endOfDiscordTokenPart(text string, partStart int) int {
	for partStart < len(text) && isDiscordTokenByte(text[partStart]) {
		partStart++
	}
	return partStart
}

func isDiscordTokenByte(b byte) bool { return isBase64(b) && b != '+' && b != '/' }

func inRange(n, minimum, maximum int) bool { return n >= minimum && n <= maximum }
