package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/record/redact"
)

// joinParts hides secrets in test sources from secret scanners.
func joinParts(parts ...string) string { return strings.Join(parts, "") }

func TestString(t *testing.T) {
	ghp := joinParts("ghp", "_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8")
	r := redact.New(redact.Options{
		Environ: []string{"MY_TOKEN=hunter22hunter", "USER=somebody", "PWD=/home/somebody", "MAX_OUTPUT_TOKENS=32000000"},
		Values:  []string{"correct horse", "tiny"},
	})
	for _, c := range []struct{ name, in, want string }{
		{"known", "is hunter22hunter", "is [redacted]"},
		{"known, of another name", "somebody in /home/somebody has 32000000", "somebody in /home/somebody has 32000000"},
		{"known, escaped", "?q=correct+horse&r=correct%20horse", "?q=[redacted]&r=[redacted]"},
		{"known, base64 of it and more", "Basic x, " + base64.StdEncoding.EncodeToString([]byte("somebody:hunter22hunter")), "Basic x, [redacted]"},
		{"too short", "tiny", "tiny"},
		{"password in a URL", "postgres://me:s3cr3t@db/x?a=1", "postgres://me:[redacted]@db/x?a=1"},
		{"token in a URL", "GET https://h/p?token=abcdef12&x=y", "GET https://h/p?token=[redacted]&x=y"},
		{"signature in a URL", "https://h/p?X-Amz-Signature=0011aabbccdd&x=y", "https://h/p?X-Amz-Signature=[redacted]&x=y"},
		{"flag", "run --token abcd1234 --verbose", "run --token [redacted] --verbose"},
		{"flag with =", "run --api-key=abcd1234 x", "run --api-key=[redacted] x"},
		{"user and password", "curl -u me:passw0rd https://h", "curl -u [redacted] https://h"},
		{"AKIA", "key " + joinParts("AKIA", "IOSFODNN7EXAMPLE") + ".", "key [redacted]."},
		{"JWT", joinParts("eyJ", "hbGciOiJIUzI1NiJ9", ".", "eyJ", "zdWIiOiIxIn0", ".", "c2lnbmF0dXJl"), "[redacted]"},
		{"PEM", "a\n" + joinParts("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIE\nabc\n-----END RSA ", "PRIVATE KEY-----") + "\nb", "a\n[redacted]\nb"},
		{"PEM, cut", joinParts("-----BEGIN ", "PRIVATE KEY-----\nMIIE"), "[redacted]"},
		{"GitHub", "x=" + ghp, "x=[redacted]"},
		{"bearer", "Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer [redacted]"},
		{"basic", "authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("a:bcdefgh")), "authorization: Basic [redacted]"},
		{"shape in base64", "data " + base64.StdEncoding.EncodeToString([]byte("the token is "+ghp)), "data [redacted]"},
		{"shape with escapes", "u=" + url.QueryEscape("a b "+ghp), "u=a+b+[redacted]"},
		{"assignment", "export GITHUB_TOKEN=abc123def", "export GITHUB_TOKEN=[redacted]"},
		{"reference", "export GITHUB_TOKEN=$OTHER API_KEY=${KEY} --token $T", "export GITHUB_TOKEN=$OTHER API_KEY=${KEY} --token $T"},
		{"cookie of curl", "curl -b session=abc123def https://h", "curl -b session=[redacted] https://h"},
		{"cookie of curl, quoted", `curl --cookie "a=1; session=abc" https://h`, `curl --cookie "a=[redacted]" https://h`},
		{"cookie of curl, among other flags", "curl -sSb session=abc123 https://h && go test -bench=Parse", "curl -sSb session=[redacted] https://h && go test -bench=Parse"},
		{"user of curl, among other flags", "curl -su me:passw0rd https://h", "curl -su me:[redacted] https://h"},
		{"file of cookies", "curl -b jar.txt --cookie-jar out=1.txt https://h", "curl -b jar.txt --cookie-jar out=1.txt https://h"},
		{"cookie header", `curl -H "Cookie: a=1; session=xyz" https://h`, `curl -H "Cookie: a=[redacted]" https://h`},
		{"Docker, alone", "tokens " + joinParts("dckr_", "pat_AbC-dEf_1234567890abcdefg") + " and " + joinParts("dckr_", "oat_AbCdEf12345678"), "tokens [redacted] and [redacted]"},
		{"Docker", "docker login -p " + joinParts("dckr_", "pat_AbC-dEf_1234567890abcdefg"), "docker login -p [redacted]"},
		{"Telegram", "https://api.telegram.org/bot" + joinParts("110201543", ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_") + "/getMe", "https://api.telegram.org/bot[redacted]/getMe"},
		{"Telegram, alone", "use " + joinParts("110201543", ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_") + ".", "use [redacted]."},
		{"Discord", "Bot " + joinParts("MTk4NjIyNDgzNDcxOTI1MjQ4", ".Cl2FMQ.", "ZnCjm1XVW7vRze4b7Cq4se7kKWs") + " x", "Bot [redacted] x"},
		{"Discord, a webhook", "https://discord.com/api/webhooks/123/" + joinParts("abcDEF123456", "ghiJKL789012"), "https://discord.com/api/webhooks/123/[redacted]"},
		{"Discord, cut off", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ"},
		{"names with dots", "see com.example.MainActivityOfTheApplication.create.theQuickBrownFoxJumpsOverTheLazyDog", "see com.example.MainActivityOfTheApplication.create.theQuickBrownFoxJumpsOverTheLazyDog"},
		{"pgpass", "echo 'localhost:5432:db:me:s3cret' >> ~/.pgpass", "echo 'localhost:5432:db:me:[redacted]' >> ~/.pgpass"},
		{"pgpass, any port", "cat >~/.pgpass <<E\n*:*:*:me:s3cret\nh:6543:d:me:pw\\:d\nE", "cat >~/.pgpass <<E\n*:*:*:me:[redacted]\nh:6543:d:me:[redacted]\nE"},
		{"places in files", "main.go:12:5:undefined:thing\nmain.go:13:5: undefined", "main.go:12:5:undefined:thing\nmain.go:13:5: undefined"},
		{"netrc", `printf 'machine h.example\n  login me\n  password s3cret\n' > ~/.netrc`, `printf 'machine h.example\n  login me\n  password [redacted]' > ~/.netrc`},
		{"netrc on one line", "echo default login me password pw >> ~/.netrc", "echo default login me password [redacted] >> ~/.netrc"},
		{"sshpass", "sshpass -p hunter2 ssh me@h; sshpass -pother ssh h; sshpass -v -p 'a b' ssh h", "sshpass -p [redacted] ssh me@h; sshpass -p[redacted] ssh h; sshpass -v -p '[redacted]' ssh h"},
		{"passwords in variables of clients", "PGPASSWORD=hunter2 psql; SSHPASS='hunter2' sshpass -e ssh h; MYSQL_PWD=hunter2 mysql", "PGPASSWORD=[redacted] psql; SSHPASS='[redacted]' sshpass -e ssh h; MYSQL_PWD=[redacted] mysql"},
		{"passwords of openssl and aws", "openssl enc -k hunter2 -in a; openssl rsa -passin pass:hunter2 -in a; aws configure set default.aws_secret_access_key hunter2", "openssl enc -k [redacted] -in a; openssl rsa -passin pass:[redacted] -in a; aws configure set default.aws_secret_access_key [redacted]"},
		{"sshpass with a file", "sshpass -f ~/pw -e ssh -p 22 h", "sshpass -f ~/pw -e ssh -p 22 h"},
		{"clients of databases", "mysql -u me -phunter2 -p db; redis-cli -h x -a hunter2 ping", "mysql -u me -p[redacted] -p db; redis-cli -h x -a [redacted] ping"},
		{"logins with a token", "vault login s.short && vault login -no-print hunter2; vault login token=hunter2; vault login -method=userpass username=me password=pw1; cargo login abc123; snyk auth 11-22; ngrok config add-authtoken tok1", "vault login [redacted] && vault login -no-print [redacted]; vault login token=[redacted]; vault login -method=userpass username=me password=[redacted]; cargo login [redacted]; snyk auth [redacted]; ngrok config add-authtoken [redacted]"},
		{"logins with a user and a password", "cf auth me hunter2; bw login me@h hunter2; rabbitmqctl add_user me hunter2; htpasswd -cb file me hunter2; az login -u me -p hunter2; podman login -u me -p hunter2 h; oc login -u me -p=hunter2", "cf auth me [redacted]; bw login me@h [redacted]; rabbitmqctl add_user me [redacted]; htpasswd -cb file me [redacted]; az login -u me -p [redacted]; podman login -u me -p [redacted] h; oc login -u me -p=[redacted]"},
		{"settings of registries", "npm config set //registry.example/:_authToken hunter2 && npm set _auth=aHVudGVy && yarn config set npmAuthToken hunter2", "npm config set //registry.example/:_authToken [redacted] && npm set _auth=[redacted] && yarn config set npmAuthToken [redacted]"},
		{"passwords of clients", "mongosh -u me -p hunter2 h; zip -P hunter2 a.zip b; 7z a -phunter2 a.7z b; ldapsearch -D me -w hunter2; sqlcmd -S h -P hunter2; smbclient -U me%hunter2 //h/x; lftp -u me,hunter2 h; sqlplus -s me/hunter2; keytool -list -storepass hunter2; tailscale up --authkey hunter2; gh secret set N --body hunter2; kubectl create secret generic x --from-literal=k=hunter2", "mongosh -u me -p [redacted] h; zip -P [redacted] a.zip b; 7z a -p[redacted] a.7z b; ldapsearch -D me -w [redacted]; sqlcmd -S h -P [redacted]; smbclient -U me%[redacted] //h/x; lftp -u me,[redacted] h; sqlplus -s me/[redacted]; keytool -list -storepass [redacted]; tailscale up --authkey [redacted]; gh secret set N --body [redacted]; kubectl create secret generic x --from-literal=k=[redacted]"},
		{"passwords of more clients", "plink -ssh -pw hunter2 h; http -a me:hunter2 GET h; xfreerdp /u:me /p:hunter2 /v:h; poetry publish -u me -p hunter2; poetry config pypi-token.pypi hunter2; curl --oauth2-bearer hunter2 h; timeout 5 vault login hunter2; env A=b vault login hunter2", "plink -ssh -pw [redacted] h; http -a me:[redacted] GET h; xfreerdp /u:me /p:[redacted] /v:h; poetry publish -u me -p [redacted]; poetry config pypi-token.pypi [redacted]; curl --oauth2-bearer [redacted] h; timeout 5 vault login [redacted]; env A=b vault login [redacted]"},
		{"connection strings", "psql 'host=h user=me password=hunter2 dbname=x'\nServer=h;Uid=me;Pwd=hunter2;\npassword='hunter2' user=me\npassword=hunter2", "psql 'host=h user=me password=[redacted] dbname=x'\nServer=h;Uid=me;Pwd=[redacted];\npassword='[redacted]' user=me\npassword=hunter2"},
		{"clients without a password", "http GET h; https h -a; plink -P 22 h; poetry config virtualenvs.create false; user = find(name, password = ask())", "http GET h; https h -a; plink -P 22 h; poetry config virtualenvs.create false; user = find(name, password = ask())"},
		{"passwords from the input", "echo hunter2 | docker login -u me --password-stdin; printf '%s' \"hunter2\" | gh auth login --with-token; echo -n s.short | vault login -\necho hunter2 | sudo -S ls\nsudo -S ls <<< hunter2\ngh auth login --with-token <<<'hunter2'\necho me:hunter2 | chpasswd", "echo [redacted] | docker login -u me --password-stdin; printf '%s' \"[redacted]\" | gh auth login --with-token; echo -n [redacted] | vault login -\necho [redacted] | sudo -S ls\nsudo -S ls <<< [redacted]\ngh auth login --with-token <<<'[redacted]'\necho [redacted] | chpasswd"},
		{"logins without a value", "vault login; vault login -method=oidc; cargo login && ls; echo a | docker build -; use `vault login` with care, then cargo login again; npm config set registry https://h; echo hello | sudo tee f; snyk auth", "vault login; vault login -method=oidc; cargo login && ls; echo a | docker build -; use `vault login` with care, then cargo login again; npm config set registry https://h; echo hello | sudo tee f; snyk auth"},
		{"a login in JSON", `{"command":"vault login s.short","x":"cf auth me hunter2\nls"}`, `{"command":"vault login [redacted]","x":"cf auth me [redacted]\nls"}`},
		{"escapes of a quoted text", `"a\nsshpass -p hunter2 x\tcurl -b \"session=abc\" h"`, `"a\nsshpass -p [redacted] x\tcurl -b \"session=[redacted]\" h"`},
		{"words after bearer and basic", "the bearer of a token, basic operations", "the bearer of a token, basic operations"},
		{"JSON in a string", `{"a":"{\"password\":\"pa55\"}"}`, `{"a":"{\"password\":\"[redacted]\"}"}`},
		{"token of a bot after a dot", ". " + joinParts("MTk4NjIyNDgzNDcxOTI1MjQ4", ".Cl2FMQ.", "ZnCjm1XVW7vRze4b7Cq4se7kKWs"), ". [redacted]"},
		{"too little entropy", "key p8e-" + strings.Repeat("ab", 16) + " x", "key p8e-" + strings.Repeat("ab", 16) + " x"},
		{"nothing follows", "password =", "password ="},
		{"a challenge", "Bearer authentication, bearer credentials", "Bearer authentication, bearer credentials"},
		{"prose", "The token bucket limits the basic operations; see secret sharing and api keys.", "The token bucket limits the basic operations; see secret sharing and api keys."},
		{"code", "token := strings.TrimSpace(password)\nfunc (k *key) secret() string { return k.token }", "token := strings.TrimSpace(password)\nfunc (k *key) secret() string { return k.token }"},
		{"usage", `{"input_tokens":123456,"max_tokens":"100000"}`, `{"input_tokens":123456,"max_tokens":"100000"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, r.String(c.in)); diff != "" {
				t.Errorf("String(%q) (-want +got):\n%s", c.in, diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	r := redact.New(redact.Options{Environ: []string{`A_SECRET=say "hi"`}})
	for _, c := range []struct{ in, want string }{
		{`{ "api_key" : "abc", "n": 1.50, "z": null }`, `{ "api_key" : "[redacted]", "n": 1.50, "z": null }`},
		{`{"token":["abc","def"],"token_type":"bearer"}`, `{"token":["abc","def"],"token_type":"bearer"}`},
		{`{"password":7,"secret":"","apiKeyHelper":"cat /k"}`, `{"password":7,"secret":"","apiKeyHelper":"[redacted]"}`},
		{`["say \"hi\"","\u0073ay \"hi\""]`, `["[redacted]","[redacted]"]`},
		{`{"a":"x","b":"\u2028<&"}`, `{"a":"x","b":"\u2028<&"}`},
		{`not json, token=abc123`, `not json, token=abc123`},
		{`{"not": json --token abcd1234`, `{"not": json --token [redacted]`},
	} {
		if diff := cmp.Diff(c.want, string(r.JSON(json.RawMessage(c.in)))); diff != "" {
			t.Errorf("JSON(%s) (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestArgs(t *testing.T) {
	r := redact.New(redact.Options{})
	got := r.Args([]string{"claude", "--token", "abc", "-u", "me:pw", "--api-key=x1", "-p", "hi", "--header", "Authorization: Bearer abcdefgh", "--max-tokens", "5"})
	want := []string{"claude", "--token", "[redacted]", "-u", "me:[redacted]", "--api-key=[redacted]", "-p", "hi", "--header", "Authorization: Bearer [redacted]", "--max-tokens", "5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Options of well-known commands are read across arguments, and a secret value of one argument is hidden in all of
// them.
func TestArgsOfCommands(t *testing.T) {
	r := redact.New(redact.Options{})
	for _, c := range []struct{ in, want []string }{
		{[]string{"sshpass", "-p", "a b", "ssh", "-p", "22", "h"}, []string{"sshpass", "-p", "[redacted]", "ssh", "-p", "22", "h"}},
		{[]string{"vault", "login", "s.short"}, []string{"vault", "login", "[redacted]"}},
		{[]string{"vault", "login", "token=hunter2"}, []string{"vault", "login", "token=[redacted]"}},
		{[]string{"cf", "auth", "me", "a b"}, []string{"cf", "auth", "me", "[redacted]"}},
		{[]string{"curl", "-b", "a=1; session=xyz", "https://h"}, []string{"curl", "-b", "a=[redacted]", "https://h"}},
		{[]string{"mysql", "-phunter2", "-p", "db"}, []string{"mysql", "-p[redacted]", "-p", "db"}},
		{[]string{"env", "MY_TOKEN=hunter22", "claude", "-p", "use hunter22"}, []string{"env", "MY_TOKEN=[redacted]", "claude", "-p", "use [redacted]"}},
		{[]string{"echo", "API_KEY", "=", "abc123def"}, []string{"echo", "API_KEY", "=", "abc123def"}},
		{[]string{"--token", "$TOKEN", "-u", "me:", "--password=", "x"}, []string{"--token", "$TOKEN", "-u", "me:", "--password=", "x"}},
		{[]string{"claude", "--token", "hunter22", "-p", "use hunter22"}, []string{"claude", "--token", "[redacted]", "-p", "use [redacted]"}},
		{[]string{"--token", "aaaaaaaa", "--token", "xX.*xX", "--token", "aaaaaaab"}, []string{"--token", "aaaaaaaa", "--token", "xX.*xX", "--token", "[redacted]"}},
		{[]string{"--settings", `{"api_key":"hunter22 \"x"}`, "--", "[x]", "h\xffllo"}, []string{"--settings", `{"api_key":"[redacted]"}`, "--", "[x]", "h\xffllo"}},
	} {
		if diff := cmp.Diff(c.want, r.Args(c.in)); diff != "" {
			t.Errorf("Args(%q) (-want +got):\n%s", c.in, diff)
		}
	}
}

// The value of a variable is secret because of its name; if such names have other uses, the value must also look like a
// secret.
func TestVariables(t *testing.T) {
	for variable, secret := range map[string]bool{
		"SSHPASS=hunter2hunter": true, "MYSQL_PWD=hunter2hunter": true, "DB_PASS=only words": true, "GITHUB_PAT=hunter2hunter": true,
		"SIGNING_KEY=abcdef0123456": true, "NPM_AUTH=bWU6cGFzc3cwcmQx": true, "SLACK_WEBHOOK=T0000/B0000/abcdef": true, "LOGIN_COOKIE=abcdefgh": true,
		"PWD=some directory": false, "OLDPWD=some directory": false, "SSH_KEY=/home/me/.ssh/id_ed25519": false, "PASS=~/pass": false, "TLS_KEY=./certs/key1234.pem": false,
		"TLS_KEY=certs/key1234.pem": false, "PRIMARY_KEY=identifier": false, "XDG_SESSION=wayland": false, "SORT_KEY=12345678901": false, "X_KEY=abc de 12345": false, "SORT_KEY=lastmodified1": false,
		"X_AUTH=required": false, "CLAUDE_CODE_SESSION_ID=0123456789abcdef": false, "=nameless": false, "_=/usr/bin/env": false,
	} {
		_, value, _ := strings.Cut(variable, "=")
		r := redact.New(redact.Options{Environ: []string{variable}})
		if got := !strings.Contains(r.String("is "+value+" there"), value); got != secret {
			t.Errorf("%s: hidden %v, want %v", variable, got, secret)
		}
	}
	r := redact.New(redact.Options{Environ: []string{"DATABASE_URL=postgres://me:hunter2hunter@db/x", "BROKEN=http://me:pw@%zz", "PLAIN=http://h"}})
	if got := r.String("psql -W hunter2hunter"); got != "psql -W [redacted]" {
		t.Errorf("the password of a URL in a variable: %q", got)
	}
}

// Secrets are found at any distance from each other.
func TestDistances(t *testing.T) {
	ghp := joinParts("ghp", "_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8")
	r := redact.New(redact.Options{})
	for n := 500; n < 800; n += 10 {
		space := strings.Repeat(" ", n)
		if got := r.String(ghp + space + ghp + space + ghp); got != "[redacted]"+space+"[redacted]"+space+"[redacted]" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

// Personal data is hidden like secrets.
func TestPersonalOption(t *testing.T) {
	r := redact.New(redact.Options{Personal: &redact.PersonalData{Users: []string{"somebody"}}})
	if got := r.String("somebody at 192.0.2.1"); got != "[redacted] at [redacted]" {
		t.Errorf("%q", got)
	}
}

// A key that arrives line by line is hidden completely.
func TestLines(t *testing.T) {
	r := redact.New(redact.Options{})
	var lines redact.PrivateKeyFilter
	var got []string
	for line := range strings.SplitSeq(joinParts("a\nx -----BEGIN RSA ", "PRIVATE KEY-----\nMIIEabc\nabc\n-----END RSA ", "PRIVATE KEY----- b\nc\n-----BEGIN ", "PRIVATE KEY-----z-----END ", "PRIVATE KEY-----\nd\n-----BEGIN ", "PRIVATE KEY-----\nMIIE\n-----END ", "PRIVATE KEY-----\ne"), "\n") {
		if text, shown := lines.LinePartOutsideKey(line); shown {
			got = append(got, r.String(text))
		}
	}
	if diff := cmp.Diff([]string{"a", "x [redacted]", " b", "c", "[redacted]", "d", "[redacted]", "e"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Equal secrets get equal placeholders. Each kind is numbered separately.
func TestNumbered(t *testing.T) {
	r := redact.New(redact.Options{Label: &redact.NumberedPlaceholders{}})
	a, b := joinParts("ghp", "_A1b2C3d4E5f6G7h8I9j0"), joinParts("ghp", "_Z1b2C3d4E5f6G7h8I9j0")
	k := joinParts("sk-ant-", "api03-abcdefgh")
	want := "REDACTED_GITHUB_TOKEN_1 REDACTED_GITHUB_TOKEN_2 REDACTED_ANTHROPIC_KEY_1 REDACTED_GITHUB_TOKEN_1"
	if diff := cmp.Diff(want, r.String(strings.Join([]string{a, b, k, a}, " "))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Texts without secrets: the documents and scenarios of this repository.
func TestCleanCorpus(t *testing.T) {
	r := redact.New(redact.Options{})
	for _, pattern := range []string{"../../../docs/*.md", "../../../*.md", "../../../scenarios/library/*", "../../../fixtures/library/*", "../../cli/*.go", "../../../simulator/*.go", "../../../mcp/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil || strings.HasSuffix(file, "_test.go") {
				continue // a directory, or a file that contains secrets on purpose
			}
			for _, f := range r.Find(string(data)) {
				if f.Certain {
					t.Errorf("%s: %s: %q", file, f.Kind, data[f.Start:f.End])
				}
			}
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"token":"a\"b","n":[1,"ghp_A1b2C3d4E5f6G7h8I9j0"]}`)
	f.Add(`"\ud800 -----BEGIN PRIVATE KEY-----"`)
	f.Add(`{"a":"[\"Bearer abcdefgh\"]"}`)
	r := redact.New(redact.Options{Values: []string{"abcdef"}})
	f.Fuzz(func(t *testing.T, in string) {
		out := string(r.JSON(json.RawMessage(in)))
		if json.Valid([]byte(in)) && !json.Valid([]byte(out)) {
			t.Fatalf("%q became %q", in, out)
		}
		end := 0
		for _, f := range r.Find(in) {
			if f.Start < end || f.End <= f.Start || f.End > len(in) {
				t.Fatalf("finding %+v in %q", f, in)
			}
			end = f.End
		}
	})
}

func BenchmarkString(b *testing.B) {
	data, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		b.Fatal(err)
	}
	r := redact.New(redact.Options{Environ: []string{"A_TOKEN=abcdefghijkl", "B_SECRET=mnopqrstuvwx"}})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r.String(string(data))
	}
}
