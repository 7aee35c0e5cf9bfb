package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/nasml/lab/nasml/internal/images"
)

// own are the sets of FromArrays, by name and split.
var (
	ownLock sync.Mutex
	own     = map[Name]map[Split]*Images{}
)

// FromArrays registers a split of a data set of the reader's arrays, which Load and every parameter Data know by its
// name while the program runs. pixels are [N, height, width, channels], row-major, as bytes or as numbers from 0 to 1,
// which are rounded to bytes; labels are N classes from 0 to 255. Trials are keyed by content, not by name. It returns
// an error for wrong counts, numbers out of range, and the name of a built-in set. The same name again replaces the
// arrays.
func FromArrays[P uint8 | float32 | float64](name Name, split Split, height, width, channels int, pixels []P,
	labels []int) (*Images, error) {
	if taken := append(publishers.names(), Synthetic, ""); slices.Contains(taken, name) {
		return nil, fmt.Errorf("%q is no name for own data, expected none of %q", name, taken)
	}
	im := Images{Name: name, Split: split, Height: height, Width: width, Channels: channels}
	for i, p := range pixels {
		v, err := asByte(p)
		if err != nil {
			return nil, fmt.Errorf("%s %s: pixel %d: %w", name, split, i, err)
		}
		im.Pixels = append(im.Pixels, v)
	}
	for i, label := range labels {
		if label < 0 || label > math.MaxUint8 {
			return nil, fmt.Errorf("%s %s: label %d is %d, expected a class from 0 to 255", name, split, i, label)
		}
		im.Labels = append(im.Labels, uint8(label))
	}
	made, err := images.New(im)
	if err != nil {
		return nil, err
	}
	ownLock.Lock()
	defer ownLock.Unlock()
	if own[name] == nil {
		own[name] = map[Split]*Images{}
	}
	own[name][split] = made
	return made, nil
}

func asByte[P uint8 | float32 | float64](p P) (uint8, error) {
	if v, ok := any(p).(uint8); ok {
		return v, nil
	}
	v := float64(p)
	if !(v >= 0 && v <= 1) { // NaN too
		return 0, fmt.Errorf("found %v, expected a number from 0 to 1, or bytes", v)
	}
	return uint8(math.Round(255 * v)), nil
}

func ownNames() []Name {
	ownLock.Lock()
	defer ownLock.Unlock()
	return slices.Sorted(maps.Keys(own))
}

// ownSet finds a split of FromArrays; false if the name is not one of them.
func ownSet(name Name, split Split) (*Images, bool, error) {
	ownLock.Lock()
	defer ownLock.Unlock()
	splits, ok := own[name]
	if !ok {
		return nil, false, nil
	}
	if splits[split] == nil {
		return nil, true, fmt.Errorf("own data %s have no split %q: give it by data.FromArrays, too", name, split)
	}
	return splits[split], true, nil
}
