#!/bin/bash
#SBATCH --job-name={{.Name}}
#SBATCH --array=1-{{.Array}}
#SBATCH --cpus-per-task={{.Cpus}}
{{- if .Time}}
#SBATCH --time={{.Time}}
{{- end}}{{if .Mem}}
#SBATCH --mem={{.Mem}}
{{- end}}{{if .Gpus}}
#SBATCH --gpus={{.Gpus}}
{{- end}}{{if .Partition}}
#SBATCH --partition={{.Partition}}
{{- end}}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={{.Dir}}/%A_%a.log
#SBATCH --signal=B:TERM@60
# Every task computes a part of the trials that {{.Store}} lacks.
# Submit the same script again to compute what is still missing.
{{- range .Env}}
export {{.}}
{{- end}}
cd {{quote .Root}}
exec {{quote .Program}}{{range .Args}} {{quote .}}{{end}} --shard "$SLURM_ARRAY_TASK_ID/{{.Array}}"
