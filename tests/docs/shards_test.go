package docs

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// workflow has the keys of the files in docs/shards.md that determine where commands run.
type workflow struct {
	// GitHub
	Jobs map[string]struct {
		Strategy struct{ Matrix struct{ Shard []int } }
		Steps    []struct{ Run string }
	}
	// GitLab
	Test struct {
		Parallel int
		Script   []string
	}
	Verdict struct{ Script []string }
	// Kubernetes
	Kind string
	Spec struct {
		Completions    int
		CompletionMode string `yaml:"completionMode"`
		Template       struct {
			Spec struct {
				Containers []struct {
					Command, Args  []string
					ReadinessProbe struct {
						TCPSocket struct{ Port int } `yaml:"tcpSocket"`
					} `yaml:"readinessProbe"`
					VolumeMounts []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// TestShards runs the commands of each recipe of docs/shards.md with the variables that its system sets: the shards,
// then the verdict. With one shard less the verdict must fail.
func TestShards(t *testing.T) {
	t.Parallel()
	recipes := map[string]func(t *testing.T, at *page) (shards []string, verdict string){
		"github": func(t *testing.T, at *page) (shards []string, verdict string) {
			t.Helper()
			w := readWorkflow(t, filepath.Join(at.dir, "github.yml"))
			indices := w.Jobs["test"].Strategy.Matrix.Shard
			for _, index := range indices {
				run := strings.ReplaceAll(lastRun(w.Jobs["test"].Steps), "${{ matrix.shard }}", fmt.Sprint(index))
				shards = append(shards, strings.ReplaceAll(run, "${{ strategy.job-total }}", fmt.Sprint(len(indices))))
			}
			return shards, lastRun(w.Jobs["verdict"].Steps)
		},
		"gitlab": func(t *testing.T, at *page) (shards []string, verdict string) {
			t.Helper()
			w := readWorkflow(t, filepath.Join(at.dir, "gitlab.yml"))
			for node := range w.Test.Parallel {
				shards = append(shards, fmt.Sprintf("CI_NODE_INDEX=%d CI_NODE_TOTAL=%d; %s", node+1, w.Test.Parallel, w.Test.Script[1]))
			}
			return shards, w.Verdict.Script[1]
		},
		"kubernetes": func(t *testing.T, at *page) (shards []string, verdict string) {
			t.Helper()
			w := readWorkflow(t, filepath.Join(at.dir, "job.yml"))
			if w.Spec.CompletionMode != "Indexed" {
				t.Error("the pods of the Job do not know their index")
			}
			for index := range w.Spec.Completions {
				shards = append(shards, fmt.Sprintf("JOB_COMPLETION_INDEX=%d; %s", index, w.Spec.Template.Spec.Containers[0].Command[2]))
			}
			return shards, readWorkflow(t, filepath.Join(at.dir, "verdict.yml")).Spec.Template.Spec.Containers[0].Command[2]
		},
		"bazel": func(t *testing.T, at *page) (shards []string, verdict string) {
			t.Helper()
			build, err := os.ReadFile(filepath.Join(at.dir, "BUILD.bazel"))
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			if m := regexp.MustCompile(`shard_count = (\d+)`).FindSubmatch(build); m != nil {
				fmt.Sscan(string(m[1]), &count)
			}
			for index := range count {
				out := fmt.Sprintf("bazel-testlogs/triage/shard_%d_of_%d/test.outputs", index+1, count)
				shards = append(shards, fmt.Sprintf("mkdir -p %[1]s; TEST_SHARD_STATUS_FILE=%[1]s/status TEST_UNDECLARED_OUTPUTS_DIR=$PWD/%[1]s TEST_SHARD_INDEX=%[2]d TEST_TOTAL_SHARDS=%[3]d sh bazel_test.sh", out, index, count))
			}
			return shards, "sh bazel_verdict.sh"
		},
	}
	for name, recipe := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, missing := range []int{0, 1} {
				at := &page{dir: t.TempDir()}
				at.runBlocks(t, tree.ReadFile(t, "docs/shards.md"), func(string) string { return "TestPages runs it" })
				shards, verdict := recipe(t, at)
				if len(shards) != 3 {
					t.Fatalf("the recipe has %d shards", len(shards))
				}
				for _, shard := range shards[missing:] {
					at.run(t, shard)
				}
				out := at.run(t, verdict+`; echo "exit $?"`)
				if want := [...]string{"verdict: ok: 7 runs of claude…exit 0", "S18: expected 3 shards, got 2…exit 3"}[missing]; !outputPattern(want).MatchString(out) {
					t.Errorf("with %d shards missing, the verdict is\n%s", missing, out)
				}
			}
		})
	}
}

func readWorkflow(t *testing.T, file string) (w workflow) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return w
}

// lastRun returns the command of a GitHub job.
func lastRun(steps []struct{ Run string }) (command string) {
	for _, step := range steps {
		if step.Run != "" {
			command = step.Run
		}
	}
	return command
}

// TestDeployment starts one replica of examples/serve-replicas/deployment.yml with its arguments, with its paths in a
// directory, and sends requests as a client of the cluster does.
func TestDeployment(t *testing.T) {
	t.Parallel()
	example := filepath.Join(tree.Root, "examples", "serve-replicas")
	container := readWorkflow(t, filepath.Join(example, "deployment.yml")).Spec.Template.Spec.Containers[0]
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "scenario"), os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	if len(container.VolumeMounts) != 2 || container.ReadinessProbe.TCPSocket.Port != 8080 {
		t.Errorf("the manifest has other volumes or another probe: %+v", container)
	}
	args := strings.Join(container.Args, "\n")
	for _, mount := range container.VolumeMounts {
		args = strings.ReplaceAll(args, mount.MountPath, dir+mount.MountPath)
	}
	args = strings.ReplaceAll(strings.ReplaceAll(args, ":8080", ":0"), "$(TOKEN)", "secret")
	port := filepath.Join(dir, "port")
	cmd := exec.CommandContext(t.Context(), "claudeless", append(strings.Split(args, "\n"), "--port-file", port)...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	deadline, tick := time.Now().Add(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	number := ""
	for number == "" && time.Now().Before(deadline) {
		text, _ := os.ReadFile(port)
		number = strings.TrimSpace(string(text))
		<-tick.C
	}
	for token, want := range map[string]int{"secret": http.StatusOK, "other": http.StatusUnauthorized} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+number+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "claudeless"
		request.Header.Set("x-api-key", token)
		request.Header.Set("anthropic-version", "2023-06-01")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with the token %q: %s", token, response.Status)
		}
	}
}
