//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64)) && !noxla

package backend

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/nasml/lab/nasml/backend/programs"
)

// withCache opens XLA on a CPU with a cache in a folder of its own.
func withCache(t *testing.T) (compute.Backend, *hook) {
	t.Setenv(programs.Env, t.TempDir())
	b := openCPU(t)
	old := hooked.hook
	require.NotNil(t, old, "the plugin has a hook")
	h := newHook(old.path)
	require.NotNil(t, h.cache)
	hooked.hook = h
	t.Cleanup(func() { hooked.hook = old })
	return b, h
}

// numbers draws n numbers around 0.
func numbers[T float32 | float64](n int, seed uint64) []T {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.NormFloat64())
	}
	return x
}

func normal(seed uint64, dims ...int) *tensors.Tensor {
	size := shapes.Make(dtypes.Float32, dims...).Size()
	return tensors.FromFlatDataAndDimensions(numbers[float32](size, seed), dims...)
}

func normal64(seed uint64, dims ...int) *tensors.Tensor {
	size := shapes.Make(dtypes.Float64, dims...).Size()
	return tensors.FromFlatDataAndDimensions(numbers[float64](size, seed), dims...)
}

// epochs runs steps of gradient descent on ‖tanh(x w) − y‖² in a While loop.
func epochs(in []*Node) []*Node {
	x, y, w := in[0], in[1], in[2]
	g := x.Graph()
	cond := NewClosure(g, func(g *Graph) []*Node {
		i := Parameter(g, "i", shapes.Make(dtypes.Int32))
		for _, v := range []*Node{w, x, y} {
			Parameter(g, "of "+v.String(), v.Shape())
		}
		return []*Node{LessThan(i, Const(g, int32(20)))}
	})
	body := NewClosure(g, func(g *Graph) []*Node {
		i := Parameter(g, "i", shapes.Make(dtypes.Int32))
		w, x, y := Parameter(g, "w", w.Shape()), Parameter(g, "x", x.Shape()), Parameter(g, "y", y.Shape())
		loss := ReduceAllMean(Square(Sub(Tanh(Dot(x, w).Product()), y)))
		return []*Node{AddScalar(i, 1), Sub(w, MulScalar(Gradient(loss, w)[0], 0.1)), x, y}
	})
	return While(cond, body, Const(g, int32(0)), w, x, y)[1:2]
}

// kinds are programs of many kinds with their inputs.
var kinds = map[string]struct {
	program func(in []*Node) []*Node
	inputs  func() []*tensors.Tensor
}{
	"convolution and its gradients": {
		func(in []*Node) []*Node {
			x, kernel := in[0], in[1]
			loss := ReduceAllMean(Square(Tanh(Convolve(x, kernel).PadSame().Done())))
			return append(Gradient(loss, x, kernel), loss)
		},
		func() []*tensors.Tensor { return []*tensors.Tensor{normal(1, 4, 8, 8, 3), normal(2, 3, 3, 3, 5)} },
	},
	"a while loop": {epochs, func() []*tensors.Tensor {
		return []*tensors.Tensor{normal(3, 32, 8), normal(4, 32, 4), normal(5, 8, 4)}
	}},
	"float64": {
		func(in []*Node) []*Node {
			x := in[0]
			y := Exp(Sin(Dot(x, Transpose(x, 0, 1)).Product()))
			return []*Node{y, Gradient(ReduceAllSum(y), x)[0]}
		},
		func() []*tensors.Tensor { return []*tensors.Tensor{normal64(6, 33, 17)} },
	},
	"sorting and sums": {
		func(in []*Node) []*Node {
			x := in[0]
			return []*Node{Sort(x, 0, true), ReduceSum(x, 0), ReduceMax(x, 1), ArgMax(x, 1)}
		},
		func() []*tensors.Tensor { return []*tensors.Tensor{normal(7, 257, 31)} },
	},
	"gather, scatter and choice": {
		func(in []*Node) []*Node {
			x := in[0]
			g := x.Graph()
			at := Const(g, [][]int32{{3}, {0}, {3}, {9}})
			rows := Gather(x, at)
			positive := Where(GreaterThan(x, ScalarZero(g, x.DType())), x, ZerosLike(x))
			return []*Node{rows, positive, Gradient(ReduceAllSum(Square(rows)), x)[0]}
		},
		func() []*tensors.Tensor { return []*tensors.Tensor{normal(8, 10, 6)} },
	},
	"random numbers": {
		func(in []*Node) []*Node {
			state, u := RandomUniform(in[0], shapes.Make(dtypes.Float32, 100))
			return []*Node{state, u}
		},
		func() []*tensors.Tensor {
			state, err := RNGStateFromSeed(7)
			if err != nil {
				panic(err)
			}
			return []*tensors.Tensor{state}
		},
	},
	"a Fourier transform": {
		func(in []*Node) []*Node { y := RealFFT(in[0]); return []*Node{Real(y), Imag(y)} },
		func() []*tensors.Tensor { return []*tensors.Tensor{normal(9, 4, 64)} },
	},
	"a function that is called": {
		func(in []*Node) []*Node {
			x := in[0]
			square := NewFunction(x.Graph(), "cubed", func(g *Graph) []*Node {
				v := Parameter(g, "v", x.Shape())
				return []*Node{Mul(v, Square(v))}
			})
			return []*Node{square.Call(square.Call(x)[0])[0]}
		},
		func() []*tensors.Tensor { return []*tensors.Tensor{normal(10, 40)} },
	},
}

// run builds a program, calls it once, and returns the bytes of its results.
func run(t *testing.T, b compute.Backend, program func([]*Node) []*Node, inputs ...*tensors.Tensor) [][]byte {
	t.Helper()
	e, err := NewExec(b, program)
	require.NoError(t, err)
	defer e.Finalize()
	args := make([]any, len(inputs))
	for i, x := range inputs {
		args[i] = x
	}
	outs, err := e.Call(args...)
	require.NoError(t, err)
	return bytesOf(t, outs)
}

func bytesOf(t *testing.T, outs []*tensors.Tensor) (all [][]byte) {
	t.Helper()
	for _, out := range outs {
		require.NoError(t, out.ConstBytes(func(data []byte) { all = append(all, append([]byte{}, data...)) }))
	}
	return all
}

func TestProgramsFromTheCacheComputeTheSame(t *testing.T) {
	b, h := withCache(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			cache := h.cache
			h.cache = nil
			without := run(t, b, kind.program, kind.inputs()...)
			h.cache = cache
			compiled, loaded := h.compiled.Load(), h.loaded.Load()
			cold := run(t, b, kind.program, kind.inputs()...)
			require.Equal(t, compiled+1, h.compiled.Load(), "compiled")
			warm := run(t, b, kind.program, kind.inputs()...)
			require.Equal(t, compiled+1, h.compiled.Load(), "not compiled again")
			require.Equal(t, loaded+1, h.loaded.Load(), "taken from the cache")
			require.Equal(t, without, cold)
			require.Equal(t, without, warm)
		})
	}
}

// stepped is a training step whose first input becomes its first result.
func stepped(in []*Node) []*Node {
	w, x := in[0], in[1]
	loss := ReduceAllMean(Square(Tanh(Dot(x, w).Product())))
	return []*Node{Sub(w, Gradient(loss, w)[0]), loss}
}

// Donated buffers are taken over by a program, whether it was compiled or
// loaded.
func TestProgramsFromTheCacheTakeDonatedBuffers(t *testing.T) {
	b, h := withCache(t)
	var want [][]byte
	for round, name := range []string{"compiled", "loaded"} {
		e, err := NewExec(b, stepped)
		require.NoError(t, err)
		w, x := normal(1, 300, 200), normal(2, 16, 300)
		for range 3 {
			require.NoError(t, w.MaterializeOnDevice(b, false, 0))
			old, err := w.Buffer(b, 0)
			require.NoError(t, err)
			donated, err := DonateTensorBuffer(w, b, 0)
			require.NoError(t, err)
			outs, err := e.Call(donated, x)
			require.NoError(t, err)
			_, err = old.Data()
			require.Error(t, err, "%s: what was donated is gone", name)
			w = outs[0]
		}
		got := bytesOf(t, []*tensors.Tensor{w})
		if round == 0 {
			want = got
		}
		require.Equal(t, want, got, name)
		e.Finalize()
	}
	require.EqualValues(t, 1, h.compiled.Load())
	require.EqualValues(t, 1, h.loaded.Load())
}

func TestChangedProgramsAreCompiledAgain(t *testing.T) {
	b, h := withCache(t)
	kind := kinds["float64"]
	want := run(t, b, kind.program, kind.inputs()...)
	files, err := filepath.Glob(filepath.Join(h.cache.Dir, "*.program"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	changed := append([]byte{}, whole...)
	changed[len(changed)*2/3] ^= 1
	for name, data := range map[string][]byte{
		"a changed byte": changed, "truncated": whole[:len(whole)/2],
		"empty": nil, "longer": append(whole[:len(whole):len(whole)], 0),
	} {
		require.NoError(t, os.WriteFile(files[0], data, 0o600))
		compiled := h.compiled.Load()
		require.Equal(t, want, run(t, b, kind.program, kind.inputs()...), name)
		require.Equal(t, compiled+1, h.compiled.Load(), "%s: compiled again", name)
		kept, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.Greater(t, len(kept), len(whole)/2+1, "%s: and kept", name)
	}
}

// What is whole and yet no program is refused by the plugin.
func TestWhatIsNoProgramIsCompiled(t *testing.T) {
	b, h := withCache(t)
	kind := kinds["float64"]
	want := run(t, b, kind.program, kind.inputs()...)
	files, err := filepath.Glob(filepath.Join(h.cache.Dir, "*.program"))
	require.NoError(t, err)
	text, err := hex.DecodeString(strings.TrimSuffix(filepath.Base(files[0]), ".program"))
	require.NoError(t, err)
	require.NoError(t, h.cache.Put(programs.Key(text), []byte("no program")))
	require.Equal(t, want, run(t, b, kind.program, kind.inputs()...))
	require.EqualValues(t, 2, h.compiled.Load())
	require.Equal(t, want, run(t, b, kind.program, kind.inputs()...))
	require.EqualValues(t, 1, h.loaded.Load())
}

func TestKeysHoldAllThatCounts(t *testing.T) {
	b, h := withCache(t)
	plugin := h.path
	kind := kinds["float64"]
	run(t, b, kind.program, kind.inputs()...)
	for name, change := range map[string]func(){
		"XLA's options": func() { require.NoError(t, h.fill(h.cache, "--xla_cpu_enable_fast_math=false")) },
		"another plugin": func() {
			h.path = filepath.Join(t.TempDir(), "other.so")
			require.NoError(t, os.WriteFile(h.path, []byte("another"), 0o600))
			require.NoError(t, h.fill(h.cache, os.Getenv(flagsEnv)))
		},
	} {
		compiled := h.compiled.Load()
		change()
		run(t, b, kind.program, kind.inputs()...)
		require.Equal(t, compiled+1, h.compiled.Load(), name)
	}
	wide, err := openHostDevices(b, "xla:"+plugin, 3)
	require.NoError(t, err)
	defer wide.Finalize()
	compiled := h.compiled.Load()
	run(t, wide, kind.program, kind.inputs()...)
	require.Equal(t, compiled+1, h.compiled.Load(), "another number of devices")
}

// On two devices each of which has a part, and on the second of them alone.
func TestProgramsOfSeveralDevicesComeFromTheCache(t *testing.T) {
	b, h := withCache(t)
	mesh, err := distributed.NewDeviceMesh([]int{2}, []string{"batch"})
	require.NoError(t, err)
	mean := func(x *Node) *Node {
		y := Square(ReduceAllMean(x))
		return DivScalar(x.Graph().Distributed().AllReduceOne(y, compute.ReduceOpSum), 2)
	}
	var all [][][]byte
	for range 2 {
		e, err := NewExec(b, mean)
		require.NoError(t, err)
		outs, err := e.SPMD(mesh).Call(normal(1, 8, 3), normal(2, 8, 3))
		require.NoError(t, err)
		all = append(all, bytesOf(t, outs))
		e.Finalize()
		alone, err := NewExec(b, func(x *Node) *Node { return Exp(x) })
		require.NoError(t, err)
		second, err := alone.CallOnDevice(1, normal(3, 8))
		require.NoError(t, err)
		all = append(all, bytesOf(t, second))
		alone.Finalize()
	}
	require.EqualValues(t, 2, h.compiled.Load())
	require.EqualValues(t, 2, h.loaded.Load())
	require.Equal(t, all[:2], all[2:])
}

func TestOneOfManyCompiles(t *testing.T) {
	b, h := withCache(t)
	kind := kinds["convolution and its gradients"]
	results := make([][][]byte, 8)
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { results[i] = run(t, b, kind.program, kind.inputs()...) })
	}
	wait.Wait()
	require.EqualValues(t, 1, h.compiled.Load())
	require.EqualValues(t, len(results)-1, h.loaded.Load())
	for _, r := range results {
		require.Equal(t, results[0], r)
	}
}

// pjrt.h repeats what it needs of the interface that go-xla carries whole.
func TestPJRTLayout(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler cc")
	}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/gomlx/go-xla/pjrt").Output()
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	var program strings.Builder
	program.WriteString("#include \"pjrt_c_api.h\"\n#include \"pjrt.h\"\n")
	for place, name := range map[string]string{
		"ERROR_DESTROY": "Error_Destroy", "ERROR_MESSAGE": "Error_Message",
		"CLIENT_PLATFORM_VERSION":    "Client_PlatformVersion",
		"CLIENT_ADDRESSABLE_DEVICES": "Client_AddressableDevices", "CLIENT_COMPILE": "Client_Compile",
		"CLIENT_CREATE": "Client_Create", "CLIENT_DESTROY": "Client_Destroy",
		"LOADED_EXECUTABLE_DESTROY": "LoadedExecutable_Destroy",
		"DEVICE_DESCRIPTION_KIND":   "DeviceDescription_Kind", "DEVICE_GET_DESCRIPTION": "Device_GetDescription",
		"EXECUTABLE_DESTROY": "Executable_Destroy", "EXECUTABLE_SERIALIZE": "Executable_Serialize",
		"LOADED_EXECUTABLE_GET_EXECUTABLE": "LoadedExecutable_GetExecutable",
		"EXECUTABLE_DESERIALIZE_AND_LOAD":  "Executable_DeserializeAndLoad",
	} {
		fmt.Fprintf(&program, "_Static_assert(offsetof(nasml_api, functions) + 8 * NASML_%s == "+
			"offsetof(PJRT_Api, PJRT_%s), \"%s\");\n", place, name, name)
	}
	for ours, theirs := range map[string]string{
		"nasml_program": "PJRT_Program", "nasml_error_destroy": "PJRT_Error_Destroy_Args",
		"nasml_error_message":    "PJRT_Error_Message_Args",
		"nasml_platform_version": "PJRT_Client_PlatformVersion_Args",
		"nasml_devices":          "PJRT_Client_AddressableDevices_Args",
		"nasml_get_description":  "PJRT_Device_GetDescription_Args", "nasml_kind": "PJRT_DeviceDescription_Kind_Args",
		"nasml_compile": "PJRT_Client_Compile_Args", "nasml_get_executable": "PJRT_LoadedExecutable_GetExecutable_Args",
		"nasml_executable_destroy": "PJRT_Executable_Destroy_Args", "nasml_serialize": "PJRT_Executable_Serialize_Args",
		"nasml_deserialize": "PJRT_Executable_DeserializeAndLoad_Args", "nasml_extension": "PJRT_Extension_Base",
	} {
		fmt.Fprintf(&program, "_Static_assert(sizeof(%s) == sizeof(%s), \"%s\");\n", ours, theirs, theirs)
	}
	for ours, theirs := range map[string]string{
		"nasml_compile, executable":   "PJRT_Client_Compile_Args, executable",
		"nasml_serialize, bytes":      "PJRT_Executable_Serialize_Args, serialized_bytes",
		"nasml_serialize, deleter":    "PJRT_Executable_Serialize_Args, serialized_executable_deleter",
		"nasml_client_create, client": "PJRT_Client_Create_Args, client",
		"nasml_deserialize, loaded":   "PJRT_Executable_DeserializeAndLoad_Args, loaded_executable",
		"nasml_api, version.minor":    "PJRT_Api, pjrt_api_version.minor_version",
		"nasml_devices, num_devices":  "PJRT_Client_AddressableDevices_Args, num_addressable_devices",
	} {
		fmt.Fprintf(&program, "_Static_assert(offsetof(%s) == offsetof(%s), \"%s\");\n", ours, theirs, ours)
	}
	fmt.Fprintf(&program, "_Static_assert((int)NASML_EXTENSION_FFI == (int)PJRT_Extension_Type_FFI, \"FFI\");\n")
	cmd := exec.Command(cc, "-fsyntax-only", "-I"+strings.TrimSpace(string(dir)), "-I"+here, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(program.String())
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

// A cache that cannot be used costs one line and no numbers.
func TestProgramsWithoutACache(t *testing.T) {
	openCPU(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	shared := t.TempDir()
	require.NoError(t, os.Chmod(shared, 0o777))
	for _, dir := range []string{"off", file, filepath.Join(file, "xla"), shared} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), kernelEnv+"=1", compute.ConfigEnvVar+"=xla:cpu",
			pluginPathEnv+"="+filepath.Dir(hooked.path), programs.Env+"="+dir)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		require.NoError(t, err, "%s%s", out, said.String())
		if dir == "off" {
			require.Empty(t, said.String())
		} else {
			require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
			require.Contains(t, said.String(), "compiled programs are not kept", dir)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	bk, err := openWith(withPlugin("xla:cpu"))
	if err != nil {
		b.Skipf("no XLA: %v", err)
	}
	defer bk.Finalize()
	old := hooked.hook
	defer func() { hooked.hook = old }()
	for _, mode := range []string{"compiled", "kept", "loaded"} {
		b.Run(mode, func(b *testing.B) {
			h := &hook{path: old.path}
			if mode != "compiled" {
				h.cache = &programs.Cache{Dir: b.TempDir(), Limit: programs.DefaultLimit}
			}
			hooked.hook = h
			for b.Loop() {
				if mode == "kept" {
					if err := h.cache.Clear(); err != nil {
						b.Fatal(err)
					}
				}
				e, err := NewExec(bk, func(x *Node) *Node { return AddScalar(Exp(x), 1) })
				if err != nil {
					b.Fatal(err)
				}
				e.MustCall([]float32{1, 2, 3})
				e.Finalize()
			}
		})
	}
}
