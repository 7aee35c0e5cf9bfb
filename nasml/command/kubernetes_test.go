package command

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// indexedJob is what the tests read of a manifest. Every other field is an
// error, so that a misspelt one is seen; the names are those of batch/v1.
type indexedJob struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		GenerateName string `yaml:"generateName"`
		Namespace    string
		Labels       map[string]string
	}
	Spec struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     struct {
			Rules []struct {
				Action          string
				OnPodConditions []map[string]string `yaml:"onPodConditions"`
				OnExitCodes     struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				RestartPolicy                 string         `yaml:"restartPolicy"`
				TerminationGracePeriodSeconds int            `yaml:"terminationGracePeriodSeconds"`
				ActiveDeadlineSeconds         int            `yaml:"activeDeadlineSeconds"`
				SecurityContext               map[string]int `yaml:"securityContext"`
				Containers                    []struct {
					Name, Image     string
					Command         []string
					Env             []variable
					EnvFrom         []map[string]map[string]string `yaml:"envFrom"`
					SecurityContext map[string]bool                `yaml:"securityContext"`
					Resources       map[string]map[string]string
					VolumeMounts    []map[string]string `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name                  string
					PersistentVolumeClaim map[string]string `yaml:"persistentVolumeClaim"`
				}
			}
		}
	}
}

// manifest is what the command prints.
func manifest(t *testing.T, args ...string) (job indexedJob) {
	var out, said bytes.Buffer
	code := execute(
		context.Background(),
		append([]string{"kubernetes", "oymak2021/figure2"}, args...),
		console{&out, &said},
	)
	require.Zero(t, code, said.String())
	strict := yaml.NewDecoder(&out)
	strict.KnownFields(true)
	require.NoError(t, strict.Decode(&job))
	return job
}

func TestKubernetesManifest(t *testing.T) {
	const bucket = "s3://lab/store?region=eu-central-1"
	t.Setenv("NASML_STORE", bucket)
	job := manifest(
		t,
		"--image",
		"lab/nasml:1",
		"--array",
		"16",
		"--parallel",
		"4",
		"--time",
		"1h30m",
		"--gpus",
		"1",
		"--mem",
		"8Gi",
		"--namespace",
		"lab",
		"--secret",
		"keys",
		"--data-claim",
		"sets",
		"--set",
		"Widths=64,128",
		"--set",
		"Data=it's",
	)
	require.Equal(t, "batch/v1 Job", job.APIVersion+" "+job.Kind)
	require.Equal(t, "lab", job.Metadata.Namespace)
	require.Equal(t, "Indexed", job.Spec.CompletionMode)
	require.Equal(
		t,
		[]int{16, 4, 5400},
		[]int{job.Spec.Completions, job.Spec.Parallelism, job.Spec.Template.Spec.ActiveDeadlineSeconds},
	)
	pod := job.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	require.Equal(t, "Never", pod.RestartPolicy) // which a failure policy needs
	require.Equal(t, pod.Containers[0].Name, job.Spec.PodFailurePolicy.Rules[1].OnExitCodes.ContainerName)
	require.Equal(t, []int{exitUsage}, job.Spec.PodFailurePolicy.Rules[1].OnExitCodes.Values)
	require.Equal(
		t,
		[]variable{{"NASML_STORE", bucket}, {"NASML_DATA", "/data"}, {"GOMLX_BACKEND", "xla:cuda"}},
		pod.Containers[0].Env,
	)
	require.Equal(t, "1", pod.Containers[0].Resources["limits"]["nvidia.com/gpu"])
	require.Equal(t, "sets", pod.Volumes[0].PersistentVolumeClaim["claimName"])
	require.Equal(t, pod.Volumes[0].Name, pod.Containers[0].VolumeMounts[0]["name"])

	onVolume := manifest(t, "--image", "lab/nasml:1", "--store-claim", "shared")
	require.Equal(t, "shared", onVolume.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim["claimName"])
	require.Equal(t, variable{"NASML_STORE", "/store"}, onVolume.Spec.Template.Spec.Containers[0].Env[0])
	require.Equal(t, onVolume.Spec.Completions, onVolume.Spec.Parallelism)
}

// What a shell makes of the command of a pod is a call that computes each part.
func TestKubernetesCommand(t *testing.T) {
	t.Setenv("NASML_STORE", "gs://lab/store")
	job := manifest(t, "--image", "lab/nasml:1", "--array", "3", "--set", "Data=a b'c")
	command := job.Spec.Template.Spec.Containers[0].Command
	shown := strings.Replace(command[2], "exec go", "printf '%s|'", 1)
	for index, part := range []string{"1/3", "2/3", "3/3"} {
		cmd := exec.Command(command[0], command[1], shown)
		cmd.Env = []string{"JOB_COMPLETION_INDEX=" + string(rune('0'+index))}
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(
			t,
			"tool|nasml|run|oymak2021/figure2|--scale|paper|--set|Data=a b'c|--shard|"+part+"|",
			string(out),
		)
	}
}

func TestKubernetesMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		store string
		args  []string
		want  string
	}{
		"a folder of this machine": {t.TempDir(), []string{"--image", "x"}, "--store-claim"},
		"a folder as a bucket":     {"file:///shared", []string{"--image", "x"}, "--store-claim"},
		"no image":                 {"s3://b", nil, "--image"},
		"no time":                  {"s3://b", []string{"--image", "x", "--time", "soon"}, "8h30m"},
		"negative time":            {"s3://b", []string{"--image", "x", "--time=-5"}, "8h30m"},
		"no parts":                 {"s3://b", []string{"--image", "x", "--array", "0"}, "--cpus must be at least 1"},
		"a new line in a value": {
			"s3://b", []string{"--image", "x", "--set", "Data=a\nb"}, "without control characters"},
		"a new line in the store": {"s3://b\nx", []string{"--image", "x"}, "without control characters"},
		"capitals":                {"s3://b", []string{"--image", "x", "--namespace", "Lab"}, "RFC 1123"},
		"a dot":                   {"s3://b", []string{"--image", "x", "--namespace", "a.b"}, "RFC 1123"},
		"a long name":             {"s3://b", []string{"--image", "x", "--namespace", strings.Repeat("a", 64)}, "63"},
		"a quote":                 {"s3://b", []string{"--image", "x", "--secret", `a"b`}, "--secret"},
		"an end":                  {"s3://b", []string{"--image", "x", "--secret", "a."}, "--secret"},
		"a claim":                 {"s3://b", []string{"--image", "x", "--store-claim", "a_b"}, "--store-claim"},
		"data":                    {"s3://b", []string{"--image", "x", "--data-claim", "a-"}, "--data-claim"},
		"memory":                  {"s3://b", []string{"--image", "x", "--mem", "8GB"}, "8Gi"},
		"an image":                {"s3://b", []string{"--image", "x y"}, "--image"},
		"unknown field":           {"s3://b", []string{"--image", "x", "--set", "Width=3"}, "Width"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NASML_STORE", c.store)
			var out, said bytes.Buffer
			code := execute(
				context.Background(),
				append([]string{"kubernetes", "oymak2021/figure2"}, c.args...),
				console{&out, &said},
			)
			require.Equal(t, exitUsage, code)
			require.Contains(t, said.String(), c.want)
			require.Empty(t, out.String())
		})
	}
}
