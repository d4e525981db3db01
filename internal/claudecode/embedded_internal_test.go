package claudecode

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Every row of an embedded table has only keys of its type, and the classes and conditions of tools are those of the constants.
func TestEmbeddedTables(t *testing.T) {
	for table, rows := range map[string]any{toolTable: new([]Tool), modelTable: new([]ModelFacts), hookEventTable: new([]HookEvent), pickerModelTable: new([]SelectableModel), outputStyleTable: new([]OutputStyle)} {
		decoder := json.NewDecoder(strings.NewReader(table))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(rows); err != nil {
			t.Error(err)
		}
	}
	classes := []ToolClass{ToolClassAsk, ToolClassNeverAsk, ToolClassAsksQuestionToUser, ToolClassRunsCommandLine, ToolClassRead, ToolClassWrite, ToolClassFetch, ToolClassStartsAgent, ToolClassSkill}
	conditions := []InitToolListingCondition{InitListsToolNever, InitListsToolAlways, InitListsToolIfFlagNamesIt, InitListsToolForTaskListModelsOrIfFlagNamesIt, InitListsToolIfUserCanAnswer, InitListsToolIfMCPServerHasResources}
	for _, tool := range Tools() {
		if !slices.Contains(classes, tool.Class) || !slices.Contains(conditions, tool.Listing) {
			t.Errorf("%s: unknown class %q or condition %q", tool.Name, tool.Class, tool.Listing)
		}
	}
}
