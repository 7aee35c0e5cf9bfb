package data

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// ImportNASBench101 makes the file of LoadNASBench101 of the benchmark's own,
// which a user has in the folder from (or which from is):
//
//	nasbench_full.tfrecord      trainings of 4, 12, 36 and 108 epochs
//	nasbench_only108.tfrecord   those of 108 epochs
//
// the first where both are there, and returns the table. All of the file passes through once. Its checksums are
// verified, and for each cell that its hash is that of its graph and that it has three trainings of every length; what
// the table keeps of a training is in LoadNASBench101's documentation. Its validation and test accuracies and its time
// are those at its end; what the file has of its beginning, of its middle and of the training images is dropped. A file
// with fewer cells than the benchmark is taken: the table says so (NASBench101.Complete).
//
// An error says what was found in which record and what was expected; it wraps ErrMissing or ErrBroken. A table that is
// there already is not touched. advance, which may be nil, hears how much of the file was read.
func ImportNASBench101(
	ctx context.Context, from string, advance func(path string, done, total int64),
) (*NASBench101, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	if err := notYet(dir, table101File); err != nil {
		return nil, err
	}
	paths, err := originals(from, patterns101)
	if err != nil {
		return nil, err
	}
	b, err := readOriginal101(ctx, paths[0], heard(advance, paths[0]))
	if err != nil {
		return nil, err
	}
	return b.install(dir)
}

// patterns101 are the publisher's files, of which the first is taken.
var patterns101 = [][]string{{"nasbench_full.tfrecord", "nasbench_only108.tfrecord"}}

type reader101 struct {
	*NASBench101
	trained map[int][]uint8 // trainings so far, by epochs and row
	hashes  []string        // by row
}

func readOriginal101(ctx context.Context, path string, advance func(done, total int64)) (*NASBench101, error) {
	f, err := watch(ctx, path, advance)
	if err != nil {
		return nil, err
	}
	defer f.in.Close()
	records := newTFRecords(f)
	r := &reader101{&NASBench101{path: path, rows: map[Cell101]int{}}, map[int][]uint8{}, nil}
	switch err := r.readAll(records); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w; put an intact file in its place", path, err)
	}
	slices.SortFunc(r.lengths, func(a, b *length101) int { return b.epochs - a.epochs })
	return r.NASBench101, nil
}

func (r *reader101) readAll(records *tfRecords) error {
	known := map[string]int{} // rows by hash
	for {
		text, err := records.next()
		if errors.Is(err, io.EOF) {
			return r.complete()
		}
		if err != nil {
			return err
		}
		v, err := parseRecord101(text)
		if err != nil {
			return records.wrong("%w", err)
		}
		row, seen := known[v.hash]
		if !seen {
			if row, err = r.newCell(v); err != nil {
				return records.wrong("%w", err)
			}
			known[v.hash] = row
		}
		if err := r.take(row, v); err != nil {
			return records.wrong("%w", err)
		}
	}
}

// record101 is what is kept of one training in the benchmark's file.
type record101 struct {
	hash    string
	epochs  int
	cell    Cell101
	params  int32
	valid   uint16 // of images101
	test    uint16
	seconds float32
}

// parseRecord101 parses the JSON array of a training: hash, epochs, adjacency matrix by rows, operations, base64
// metrics.
func parseRecord101(text []byte) (*record101, error) {
	v := &record101{}
	var matrix, ops, metrics string
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil || len(raw) != 5 {
		return nil, fmt.Errorf("found %d bytes that are no JSON array of 5, expected hash, epochs, matrix, "+
			"operations, metrics", len(text))
	}
	for i, field := range []any{&v.hash, &v.epochs, &matrix, &ops, &metrics} {
		if err := json.Unmarshal(raw[i], field); err != nil {
			return nil, fmt.Errorf("element %d of the JSON array: %w", i, err)
		}
	}
	if v.epochs < 1 || v.epochs > 99999 {
		return nil, fmt.Errorf("found %d epochs, expected 4, 12, 36 or 108", v.epochs)
	}
	var err error
	if v.cell, err = parseMatrix101(matrix, strings.Split(ops, ",")); err != nil {
		return nil, err
	}
	message, err := base64.StdEncoding.DecodeString(metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := v.parseMetrics(message); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return v, nil
}

func parseMatrix101(digits string, ops []string) (Cell101, error) {
	n := len(ops)
	if len(digits) != n*n || strings.Trim(digits, "01") != "" {
		return Cell101{}, fmt.Errorf("found the matrix %q for %d operations, expected %d digits 0 and 1", digits, n,
			n*n)
	}
	matrix := make([][]int, n)
	for i := range digits {
		matrix[i/n] = append(matrix[i/n], int(digits[i]-'0'))
	}
	return newPruned101(matrix, ops)
}

// Field numbers of the messages ModelMetrics and EvaluationData, from model_metrics.proto.
const (
	fieldEvaluation = 1 // ModelMetrics: EvaluationData, of the beginning, of the middle and of the end
	fieldParams     = 2 // ModelMetrics: int32
	fieldSeconds    = 2 // EvaluationData: double
	fieldValid      = 4 // EvaluationData: double
	fieldTest       = 5 // EvaluationData: double
)

func (v *record101) parseMetrics(message []byte) error {
	var evaluations [][]byte
	err := eachField(message, func(number protowire.Number, value any) {
		switch value := value.(type) {
		case uint64:
			if number == fieldParams {
				v.params = int32(min(value, math.MaxInt32))
			}
		case []byte:
			if number == fieldEvaluation {
				evaluations = append(evaluations, value)
			}
		}
	})
	switch {
	case err != nil:
		return err
	case len(evaluations) != 3:
		return fmt.Errorf("found %d evaluations, expected those of the beginning, the middle and the end",
			len(evaluations))
	case v.params <= 0:
		return fmt.Errorf("found %d parameters, expected more than 0", v.params)
	}
	return v.parseEvaluation(evaluations[2])
}

func (v *record101) parseEvaluation(message []byte) error {
	numbers := map[protowire.Number]float64{fieldSeconds: math.NaN(), fieldValid: math.NaN(), fieldTest: math.NaN()}
	err := eachField(message, func(number protowire.Number, value any) {
		if x, ok := value.(float64); ok {
			numbers[number] = x
		}
	})
	if err != nil {
		return err
	}
	if v.seconds = float32(numbers[fieldSeconds]); !(v.seconds > 0) || math.IsInf(float64(v.seconds), 0) {
		return fmt.Errorf("found %v seconds for a whole training, expected more than 0", numbers[fieldSeconds])
	}
	for number, hits := range map[protowire.Number]*uint16{fieldValid: &v.valid, fieldTest: &v.test} {
		n := numbers[number] * images101
		whole := math.Round(n)
		if !(math.Abs(n-whole) < 0.01) || n < 0 || whole > images101 {
			return fmt.Errorf("found the accuracy %v, expected one of 0/%d to %d/%d", numbers[number], images101,
				images101, images101)
		}
		*hits = uint16(whole)
	}
	return nil
}

// eachField visits a message's fields with number and value: uint64 (varint), float64 (fixed64) or []byte.
func eachField(message []byte, visit func(number protowire.Number, value any)) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("found no field at the last %d bytes: %w", len(message), protowire.ParseError(n))
		}
		message = message[n:]
		var value any
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			var word uint64
			word, n = protowire.ConsumeFixed64(message)
			value = math.Float64frombits(word)
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		visit(number, value)
		message = message[n:]
	}
	return nil
}

func (r *reader101) newCell(v *record101) (int, error) {
	if hash := v.cell.Hash(); hash != v.hash {
		return 0, fmt.Errorf("found the hash %q, expected %s, that of the cell %s", v.hash, hash, v.cell)
	}
	row := len(r.cells)
	r.cells, r.params, r.hashes = append(r.cells, v.cell), append(r.params, v.params), append(r.hashes, v.hash)
	r.rows[v.cell.Canonical()] = row
	return row, nil
}

func (r *reader101) take(row int, v *record101) error {
	if v.cell != r.cells[row] || v.params != r.params[row] {
		return fmt.Errorf("found the cell %s with %d parameters, expected %s with %d as in the first record with "+
			"its hash", v.cell, v.params, r.cells[row], r.params[row])
	}
	l := r.lengthOf(v.epochs)
	for len(r.trained[v.epochs]) <= row {
		r.trained[v.epochs] = append(r.trained[v.epochs], 0)
		for t := range Trials101 {
			l.hits[Valid][t], l.hits[Test][t] = append(l.hits[Valid][t], 0), append(l.hits[Test][t], 0)
			l.seconds[t] = append(l.seconds[t], 0)
		}
	}
	t := r.trained[v.epochs][row]
	if t == Trials101 {
		return fmt.Errorf("found a training number %d of the cell %s with %d epochs, expected %d", t+1, v.cell,
			v.epochs, Trials101)
	}
	r.trained[v.epochs][row]++
	l.hits[Valid][t][row], l.hits[Test][t][row], l.seconds[t][row] = v.valid, v.test, v.seconds
	return nil
}

// complete returns an error for a cell without all trainings, as in a truncated file.
func (r *reader101) complete() error {
	if len(r.cells) == 0 {
		return fmt.Errorf("%w: found no record, expected three for each cell and length of training", ErrBroken)
	}
	for _, l := range r.lengths {
		trained := r.trained[l.epochs]
		for row, hash := range r.hashes {
			n := 0
			if row < len(trained) {
				n = int(trained[row])
			}
			if n != Trials101 {
				return fmt.Errorf("%w: found %d trainings of cell %s (%s) with %d epochs at the file's end, "+
					"expected %d", ErrBroken, n, hash, r.cells[row], l.epochs, Trials101)
			}
		}
	}
	return nil
}

func (b *NASBench101) install(dir string) (read *NASBench101, err error) {
	err = installTables(dir, b.path, []table{{table101File, b.csv()}}, func(made string) error {
		read, err = LoadNASBench101(made)
		return err
	})
	if err != nil {
		return nil, explain(err, File{})
	}
	read.path = filepath.Join(dir, filepath.FromSlash(table101File))
	return read, nil
}

func (b *NASBench101) csv() []byte {
	var out bytes.Buffer
	out.WriteString(strings.Join([]string{idColumn, edgesColumn, opsColumn, weightColumn}, ","))
	for _, l := range b.lengths {
		for _, name := range []string{"val9984", "test9984", "time_s"} {
			for t := range Trials101 {
				prefix := ""
				if l.epochs != 108 {
					prefix = fmt.Sprintf("e%d_", l.epochs)
				}
				fmt.Fprintf(&out, ",%s%s_%d", prefix, name, t+1)
			}
		}
	}
	out.WriteByte('\n')
	for row, cell := range b.cells {
		ops, edges := cell.short()
		fmt.Fprintf(&out, "%d,%s,%s,%d", row, edges, ops, b.params[row])
		for _, l := range b.lengths {
			for _, split := range []Split{Valid, Test} {
				for t := range Trials101 {
					out.WriteString("," + strconv.Itoa(int(l.hits[split][t][row])))
				}
			}
			for t := range Trials101 {
				out.WriteString("," + strconv.FormatFloat(float64(l.seconds[t][row]), 'g', -1, 32))
			}
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}
