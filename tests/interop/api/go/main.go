// Command go runs a loop with a tool through the Anthropic SDK for Go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func main() {
	client := anthropic.NewClient(option.WithBaseURL(os.Getenv("API")), option.WithAPIKey("any"))
	history := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("What is the weather in Oslo?"))}
	tool := anthropic.ToolParam{Name: "forecast", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}}}
	ask := func() anthropic.Message {
		stream := client.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{
			Model: "claude-sonnet-5-5", MaxTokens: 1000, Messages: history, Tools: []anthropic.ToolUnionParam{{OfTool: &tool}},
		})
		var m anthropic.Message
		for stream.Next() {
			if err := m.Accumulate(stream.Current()); err != nil {
				log.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			log.Fatal(err)
		}
		return m
	}
	first := ask()
	call := first.Content[len(first.Content)-1].AsToolUse()
	if call.Name != "forecast" || string(call.Input) != `{"city":"Oslo"}` {
		log.Fatalf("the call is %s %s", call.Name, call.Input)
	}
	history = append(history, first.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "7 degrees", false)))
	last := ask()
	if text := last.Content[0].Text; text != "The forecast says: 7 degrees" {
		log.Fatal(text)
	}
	fmt.Println("ok")
}
