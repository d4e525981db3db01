module github.com/claudeless/claudeless/tests/interop/hosts/go

go 1.26

require github.com/dotcommander/agent-sdk-go v0.1.5
