package verdict

import "fmt"

func location(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d: ", file, line)
}

func commaButActualOutcomeSuffix(actualOutcome string) string {
	if actualOutcome == "" {
		return ""
	}
	return ", but " + actualOutcome
}

func processIDInParentheses(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

func countWithNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func quoteFirst100Characters(text string) string {
	const most = 100
	if r := []rune(text); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", text)
}
