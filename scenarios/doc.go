// Package scenarios is the scripted model: it loads a scenario (TOML, or JSON
// with the same keys), says everything that is wrong with it, and answers
// requests with what the scenario says.
//
// Its invariant: a reply depends on the scenario, the options and the requests
// so far, on nothing else. The package knows no clock, environment, network,
// tool or process; a scripted failure is a value in [Reply], never an error.
//
// # Scenario files
//
// A scenario scripts the model: what it says to which prompt, and which tools
// it calls. It is a TOML file, or a JSON file (extension .json) with the same
// keys. An unknown key is an error everywhere; claudeless check FILE tells all
// that is wrong with a file at once and warns of what cannot be meant: rules
// that an earlier one hides, tools, inputs, results and groups that are not
// there. docs/schema/scenario.json lets an editor check the keys:
//
//	#:schema ./docs/schema/scenario.json
//	default_response = "I only know the weather."
//
//	[[responses]]
//	pattern = { type = "regex", pattern = 'weather in (?P<city>\w+)' }
//	[[responses.response.steps]]
//	text = "Let me look."
//	tool_calls = [{ tool = "weather/forecast_get", input = { city = "{{ match.city }}" } }]
//	[[responses.response.steps]]
//	text = "It is {{ results[0].text }} in {{ match.city }}."
//
// How a prompt is answered: the next turn of an active sequence, if the prompt
// matches it (else the sequence ends); then the rules in file order, without
// those whose max_matches is used up; then default_response; else an empty
// text. Counts and sequence belong to the session: they go on when it is
// resumed in another process, and so does a response whose tool call a hook has
// deferred. Text that the CLI itself puts in (after a Stop
// hook, a schema reminder) is matched against the rules only. So is the notice
// that work in the background has ended, a prompt which begins with
// <task-notification>; but when the next turn of a sequence matches it, that
// turn answers, and when not, the turn goes on being expected.
//
// A response is a string, a table with text and tool_calls (the calls go out
// first, the text closes after their results), or a list of steps, each one
// message of the model: its tool calls run, and the next step sees their
// results.
//
// Expressions (when, and templates in double braces in texts, tool inputs and
// canned results) are expr-lang, checked when the file is loaded. They see
// prompt, match (the groups of the pattern; match[0] is the whole match),
// results (text, is_error, tool, id, content, structured), context (the texts
// that hooks, and files and resources mentioned with @, put beside the prompt
// and the results), turn (the number of the prompt in the session, from 1),
// tools, model,
// permission_mode, system_prompt, cwd, env, args, session (id, resumed, turn)
// and schemas (input schema by tool name), and of the request itself attempt
// (from 1); behind claudeless serve also max_tokens, stream, betas, headers
// (lower case, credentials redacted), agent (id of the sub-agent that asks),
// attachments (types of images and documents in the prompt), tool_choice,
// thinking, output_config, metadata; system is another name of system_prompt. A
// string that is exactly one
// template becomes the value with its type; in longer text, what is no string
// is written as compact JSON.
package scenarios

//go:generate go run ../internal/schemadoc -dir . -type Scenario -json ../docs/schema/scenario.json -md ../docs/scenarios.md
