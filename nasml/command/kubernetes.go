package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nasml/lab/nasml/catalog"
)

type kubernetesCmd struct {
	batch
	Image      string `help:"Image of docker/, as the cluster pulls it." required:"" placeholder:"NAME:TAG"`
	Parallel   int    `help:"Parts that run at the same time; 0: all." placeholder:"N"`
	Namespace  string `help:"Namespace." placeholder:"NAME"`
	StoreClaim string `help:"PersistentVolumeClaim (ReadWriteMany, with file locks) for the store, instead of a bucket in NASML_STORE." placeholder:"CLAIM" name:"store-claim"`
	DataClaim  string `help:"PersistentVolumeClaim with the data sets; without one every part downloads them." placeholder:"CLAIM" name:"data-claim"`
	Secret     string `help:"Secret whose entries become environment variables, for the credentials of a bucket." placeholder:"NAME"`
}

type (
	volume   struct{ Name, Path, Claim string }
	variable struct{ Name, Value string }
)

// imageGroup is the group of the user in the image of docker/.
const imageGroup = 1000

func (v *kubernetesCmd) Run(_ context.Context, c console) error {
	if err := cmp.Or(v.check(), v.checkNames()); err != nil {
		return err
	}
	if v.Parallel < 0 {
		return catalog.Usagef("--parallel must be at least 1, or 0 for all, got %d", v.Parallel)
	}
	seconds, err := limitSeconds(v.Time)
	if err != nil {
		return catalog.Usagef("%v", err)
	}
	env, volumes, err := v.places()
	if err != nil {
		return catalog.Usagef("%v", err)
	}
	if v.Parallel == 0 {
		v.Parallel = v.Array
	}
	v.Parallel = min(v.Parallel, v.Array)
	if v.Gpus > 0 {
		env = append(env, variable{"GOMLX_BACKEND", "xla:cuda"})
	}
	return templates.ExecuteTemplate(c.Out, "job.yaml", struct {
		*kubernetesCmd
		Seconds int
		Env     []variable
		Volumes []volume
		Group   int
	}{v, seconds, env, volumes, imageGroup})
}

// GenerateName has at most 63 characters, of which the cluster adds some.
func (v *kubernetesCmd) GenerateName() string {
	return strings.ToLower(fmt.Sprintf("%.40s", v.Name())) + "-"
}

func (v *kubernetesCmd) checkNames() error {
	return cmp.Or(
		checkGiven(isLabel, "at most 63 of a-z, 0-9 and -, with a letter or digit at both ends (RFC 1123)",
			given{"--namespace", v.Namespace}),
		checkGiven(isSubdomain, "at most 253 of a-z, 0-9, - and ., with a letter or digit at both ends of what is "+
			"between dots (RFC 1123)",
			given{"--secret", v.Secret}, given{"--store-claim", v.StoreClaim}, given{"--data-claim", v.DataClaim}),
		checkGiven(quantity.MatchString, "a quantity such as 8Gi", given{"--mem", v.Mem}),
		checkGiven(imageName.MatchString, "an image such as host/name:tag", given{"--image", v.Image}),
		checkLines(given{"$NASML_STORE", os.Getenv("NASML_STORE")}),
	)
}

func (v *kubernetesCmd) places() (env []variable, volumes []volume, err error) {
	bucket := os.Getenv("NASML_STORE")
	isBucket := strings.Contains(bucket, "://") && !strings.HasPrefix(bucket, "file://")
	switch {
	case v.StoreClaim != "":
		volumes = append(volumes, volume{"store", "/store", v.StoreClaim})
		env = append(env, variable{"NASML_STORE", "/store"})
	case isBucket:
		env = append(env, variable{"NASML_STORE", bucket})
	default:
		return nil, nil, errors.New(
			"pods share no folder with this machine: set NASML_STORE to a bucket (s3://bucket/prefix), or name a " +
				"volume by --store-claim")
	}
	if v.DataClaim != "" {
		volumes = append(volumes, volume{"data", "/data", v.DataClaim})
		env = append(env, variable{"NASML_DATA", "/data"})
	}
	return env, volumes, nil
}

// Command computes the part of a pod's index, from 0. exec passes the signal that ends a pod on to the program.
func (v *kubernetesCmd) Command() string {
	words := []string{"exec", "go", "tool", "nasml"}
	for _, arg := range v.Args() {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ") + fmt.Sprintf(` --shard "$((JOB_COMPLETION_INDEX + 1))/%d"`, v.Array)
}

// limitSeconds reads a time limit: seconds, or a duration such as 8h30m.
func limitSeconds(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if d, other := time.ParseDuration(text); err != nil && other == nil {
		seconds, err = int(d.Seconds()), nil
	}
	if err != nil || seconds < 1 {
		return 0, fmt.Errorf("--time is %q: want seconds or a duration such as 8h30m", text)
	}
	return seconds, nil
}

func yamlText(text string) (string, error) {
	quoted, err := json.Marshal(text)
	return string(quoted), err
}
