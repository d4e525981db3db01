package files

import (
	"context"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Grep returns the tool that searches the content of files.
func Grep(f *Finder) tool.Tool {
	return tool.Tool{
		Name: "Grep",
		RenameAliases: func(in *tool.OrderedObject) (string, bool) {
			const note = "Note: Grep's parameter for where to search is named `path`. "
			if in.Get("path") != nil && tool.JSONStringOrConcatenatedList(in.Get("file_path")) == tool.JSONStringOrConcatenatedList(in.Get("path")) {
				return note + "`file_path` repeated `path` and was ignored.", tool.RemoveKeys(in, "file_path")
			}
			return note + "`file_path` was read as `path`.", tool.RenameNonEmptyStringKey(in, "file_path", "path")
		},
		Check: tool.TypedCheck(f, func(_ context.Context, _ *Finder, in grepInput) *protocol.ToolResult {
			if in.HeadLimit == nil || *in.HeadLimit >= 0 {
				return nil
			}
			return new(tool.Refuse("head_limit must be a whole number of 0 or more, got %d. Pass 0 for unlimited.", *in.HeadLimit))
		}),
		Run: tool.TypedRun(f, runGrep),
	}
}

func runGrep(ctx context.Context, f *Finder, in grepInput) protocol.ToolResult {
	s, refusal := f.newGrepSearch(in)
	if refusal != nil {
		return *refusal
	}
	found, err := s.searchAllFiles(ctx)
	switch {
	case ctx.Err() != nil:
		return executor.InterruptedResult()
	case err != nil:
		return tool.Fail("%v", err)
	}
	switch in.OutputMode {
	case "content":
		return s.contentResult(found)
	case "count":
		return s.countResult(found)
	}
	return s.filesResult(found)
}
