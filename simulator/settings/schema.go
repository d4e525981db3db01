package settings

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
)

type settingValueValidator func(v any) bool

// keysWithInvalidValues returns the keys of a file with values that the CLI rejects, in the order of the CLI's schema
// where that is known. Each of them makes the CLI ignore the whole file. Unknown keys are valid (observed with
// 2.1.329).
func keysWithInvalidValues(settingsFile map[string]any) []string {
	var bad []string
	for key, valid := range validatorsByKey() {
		if v, found := settingsFile[key]; found && !valid(v) {
			bad = append(bad, key)
		}
	}
	slices.SortFunc(bad, func(a, b string) int {
		return cmp.Or(cmp.Compare(positionOfKeyInFaultOrder(a), positionOfKeyInFaultOrder(b)), cmp.Compare(a, b))
	})
	return bad
}

func positionOfKeyInFaultOrder(key string) int {
	first := []string{
		"apiKeyHelper", "awsCredentialExport", "awsAuthRefresh", "cleanupPeriodDays", "env", "attribution", "includeCoAuthoredBy",
		"permissions", "model", "enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers", "hooks", "disableAllHooks",
		"statusLine", "enabledPlugins", "outputStyle", "language", "sandbox", "alwaysThinkingEnabled",
	}
	if i := slices.Index(first, key); i >= 0 {
		return i
	}
	return len(first)
}

// validatorsByKey returns a validator for each key that the CLI validates. Keys for which it tolerates
// faults (theme, viewMode, effortLevel, the lists of MCP servers …) are not included.
func validatorsByKey() map[string]settingValueValidator {
	checks := map[string]settingValueValidator{
		"$schema":                 isText,
		"attribution":             anyOf(isBool, objectOf(map[string]settingValueValidator{"commit": isText, "pr": isText})),
		"autoMode":                objectOf(map[string]settingValueValidator{"allow": listOf(isText), "soft_deny": listOf(isText), "environment": listOf(isText)}),
		"autoUpdatesChannel":      oneOf("latest", "stable"),
		"blockedMarketplaces":     allowNull(listOf(isObject)),
		"cleanupPeriodDays":       isPositiveInteger,
		"defaultShell":            oneOf("bash", "powershell"),
		"disableAutoMode":         allowNull(oneOf("disable")),
		"enabledPlugins":          mapOf(anyOf(isBool, listOf(isText))),
		"feedbackSurveyRate":      isFraction,
		"fileSuggestion":          requireFields(objectOf(map[string]settingValueValidator{"type": oneOf("command"), "command": isText}), "type", "command"),
		"forceLoginOrgUUID":       anyOf(isText, listOf(isText)),
		"modelOverrides":          mapOf(isText),
		"pluginConfigs":           mapOf(isObject),
		"remote":                  objectOf(map[string]settingValueValidator{"defaultEnvironmentId": isText}),
		"spinnerVerbs":            requireFields(objectOf(map[string]settingValueValidator{"mode": oneOf("append", "replace"), "verbs": listOf(isText)}), "mode", "verbs"),
		"statusLine":              requireFields(objectOf(map[string]settingValueValidator{"type": oneOf("command"), "command": isText}), "type", "command"),
		"strictKnownMarketplaces": allowNull(listOf(isObject)),
		"tui":                     oneOf("default", "fullscreen"),
		"worktree":                objectOf(map[string]settingValueValidator{"symlinkDirectories": listOf(isText), "sparsePaths": listOf(isText)}),
		"hooks":                   areHooksGuardingPermissionsValid,
		"permissions": objectOf(map[string]settingValueValidator{
			"allow": isList, "deny": isList, "ask": isList, "additionalDirectories": listOf(isText),
			"defaultMode":                  oneOf("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"),
			"disableBypassPermissionsMode": oneOf("disable"), "disableAutoMode": oneOf("disable"),
		}),
		"sandbox": objectOf(map[string]settingValueValidator{"enabled": isBool, "failIfUnavailable": isBool, "autoAllowBashIfSandboxed": isBool, "network": isObject, "filesystem": isObject, "excludedCommands": listOf(isText)}),
	}
	set := func(c settingValueValidator, names ...string) {
		for _, name := range names {
			checks[name] = c
		}
	}
	set(isText, "advisorModel", "agent", "apiKeyHelper", "autoMemoryDirectory", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh",
		"language", "minimumVersion", "model", "otelHeadersHelper", "outputStyle", "plansDirectory", "pluginTrustMessage", "proxyAuthHelper")
	set(isBool, "agentPushNotifEnabled", "alwaysThinkingEnabled", "autoCompactEnabled", "autoMemoryEnabled", "autoScrollEnabled",
		"disableAllHooks", "disableClaudeAiConnectors", "disableRemoteControl", "fastMode", "fileCheckpointingEnabled", "includeCoAuthoredBy",
		"includeGitInstructions", "prefersReducedMotion", "promptSuggestionEnabled", "respectGitignore", "showClearContextOnPlanAccept",
		"showThinkingSummaries", "spinnerTipsEnabled", "syntaxHighlightingDisabled", "terminalTitleFromRename", "verbose",
		"wslInheritsWindowsSettings")
	set(allowNull(isBool), "allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly", "channelsEnabled",
		"disableSkillShellExecution", "enableAllProjectMcpServers", "fastModePerSessionOptIn", "skipAutoPermissionPrompt",
		"skipDangerousModePermissionPrompt", "skipWebFetchPreflight", "useAutoModeDuringPlan")
	set(listOf(isText), "allowedHttpHookUrls", "availableModels", "claudeMdExcludes", "companyAnnouncements", "httpHookAllowedEnvVars")
	set(anyOf(isNonEmptyText, listOf(isText)), "disabledMcpjsonServers", "enabledMcpjsonServers")
	set(isObject, "env", "skillOverrides", "voice")
	return checks
}

func isText(v any) bool         { _, ok := v.(string); return ok }
func isNonEmptyText(v any) bool { return isText(v) && v != "" }
func isBool(v any) bool         { _, ok := v.(bool); return ok }
func isList(v any) bool         { _, ok := v.([]any); return ok }
func isObject(v any) bool       { _, ok := v.(map[string]any); return ok }

func isPositiveInteger(v any) bool {
	n, ok := v.(float64)
	return ok && n > 0 && n == math.Trunc(n)
}

func isFraction(v any) bool {
	n, ok := v.(float64)
	return ok && n >= 0 && n <= 1
}

func allowNull(c settingValueValidator) settingValueValidator {
	return func(v any) bool { return v == nil || c(v) }
}

func oneOf(texts ...string) settingValueValidator {
	return func(v any) bool { text, ok := v.(string); return ok && slices.Contains(texts, text) }
}

func anyOf(checks ...settingValueValidator) settingValueValidator {
	return func(v any) bool {
		return slices.ContainsFunc(checks, func(c settingValueValidator) bool { return c(v) })
	}
}

func listOf(c settingValueValidator) settingValueValidator {
	return func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !c(v) })
	}
}

func mapOf(c settingValueValidator) settingValueValidator {
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for _, value := range object {
			ok = ok && c(value)
		}
		return ok
	}
}

func objectOf(fields map[string]settingValueValidator) settingValueValidator {
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for key, valid := range fields {
			if value, found := object[key]; found && !valid(value) {
				return false
			}
		}
		return ok
	}
}

func requireFields(c settingValueValidator, keys ...string) settingValueValidator {
	return func(v any) bool {
		object, ok := v.(map[string]any)
		for _, key := range keys {
			_, found := object[key]
			ok = ok && found
		}
		return ok && c(v)
	}
}

// areHooksGuardingPermissionsValid validates the hooks of events that guard permissions. It ignores the hooks of other
// events: of these, withoutInvalidHooks removes only the invalid ones.
func areHooksGuardingPermissionsValid(hooksValue any) bool {
	events, _ := hooksValue.(map[string]any)
	for event, value := range events {
		if claudecode.HookEventNamed(event).CanGuardPermissions && !areHookMatchersOfEventValid(value) {
			return false
		}
	}
	return true
}

func areHookMatchersOfEventValid(matchersValue any) bool {
	return listOf(requireFields(objectOf(map[string]settingValueValidator{"matcher": isText, "hooks": listOf(isValidHook)}), "hooks"))(matchersValue)
}

func isValidHook(v any) bool {
	hook := requireFields(objectOf(map[string]settingValueValidator{
		"type": oneOf(hookKinds()...), "command": isText, "prompt": isText, "url": isText,
		"server": isText, "tool": isText, "timeout": func(v any) bool { n, ok := v.(float64); return ok && n > 0 },
	}), "type")
	if !hook(v) {
		return false
	}
	fields := v.(map[string]any)
	for _, key := range requiredHookFields(fields["type"].(string)) {
		if _, found := fields[key]; !found {
			return false
		}
	}
	return true
}

func hookKinds() []string { return []string{"command", "prompt", "agent", "http", "mcp_tool"} }

func requiredHookFields(kind string) []string {
	switch kind {
	case "command":
		return []string{"command"}
	case "http":
		return []string{"url"}
	case "mcp_tool":
		return []string{"server", "tool"}
	default:
		return []string{"prompt"}
	}
}

func validEventNames() string {
	var names []string
	for _, e := range claudecode.HookEvents() {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}

func isHookEvent(name string) bool { return claudecode.HookEventNamed(name).Name != "" }
