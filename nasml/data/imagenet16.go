package data

import (
	"fmt"
	"path"
)

// ImageNet16-120 (NAS-Bench-201, Dong & Yang 2020): labels 1 to 120 of the downsampled ImageNet, 151,700 training
// images and the 6,000 of the validation set for testing. Labels become 0 to 119.
const (
	imagenetSide    = 16
	imagenetClasses = 1000 // that the files have
	imagenetKept    = 120
)

// imagenet16 has the MD5 sums that AutoDL-Projects pins. They were not checked against real files.
var imagenet16 = func() set {
	var train []File
	for i, sum := range []string{
		"27846dcaa50de8e21a7d1a35f30f0e91", "c7254a054e0e795c69120a5727050e3f", "4333d3df2e5ffb114b05d2ffc19b1e87",
		"1620cdf193304f4a92677b695d70d10f", "348b3c2fdbb3940c4e9e834affd3b18d", "6e765307c242a1b3d7d5ef9139b48945",
		"564926d8cbf8fc4818ba23d2faac7564", "f4755871f718ccb653440b9dd0ebac66", "bb6dd660c38c58552125b1a92f86b5d4",
		"8f03f34ac4b42271a294f91bf480f29b"} {
		train = append(train, imagenetFile(fmt.Sprintf("train_data_batch_%d", i+1), sum))
	}
	images := recordFormat{labels: []int{imagenetKept}, side: imagenetSide}.images
	return set{
		Train: {files: train, images: images},
		Test:  {files: []File{imagenetFile("val_data", "3410e3017fdaefba8d5073aaa65e4bd6")}, images: images},
	}
}()

func imagenetFile(base, sum string) File {
	return File{Path: path.Join(string(ImageNet16), base), MD5: sum, Classes: imagenetKept,
		ByHand: "get Imagenet16_train.zip and Imagenet16_val.zip (the pickled batches, not the npz files) from " +
			"https://image-net.org/download-images.php, which asks for an account, unzip them"}
}

// pickledRecords returns the images of the first classes of a pickled batch as records: a label from 0 and the image by
// channel. The pickle is a dictionary with "data", bytes [N, 768], and "labels", N numbers from 1 to 1000.
func pickledRecords(pickle []byte, classes int) ([]byte, error) {
	const size = 3 * imagenetSide * imagenetSide
	batch, err := unpickleDict(pickle)
	if err != nil {
		return nil, err
	}
	pixels, err := byteArray(batch.get("data"), size)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	labels, ok := batch.get("labels").(*[]any)
	if !ok || len(*labels)*size != len(pixels) {
		return nil, fmt.Errorf("found %s for labels, expected a list of %d", describe(batch.get("labels")),
			len(pixels)/size)
	}
	var records []byte
	for i, l := range *labels {
		label, ok := l.(int)
		if !ok || label < 1 || label > imagenetClasses {
			return nil, fmt.Errorf("found %s for the label of image %d, expected 1 to %d", describe(l), i,
				imagenetClasses)
		}
		if label <= classes {
			records = append(records, byte(label-1))
			records = append(records, pixels[i*size:(i+1)*size]...)
		}
	}
	return records, nil
}

// byteArray returns the content of a pickled numpy array of bytes with rows of a size. numpy pickles a call of
// _reconstruct and its state (1, shape, dtype, Fortran order, content).
func byteArray(v any, row int) ([]byte, error) {
	array, ok := v.(*pickled)
	if !ok || array.what != "_reconstruct" || len(array.state) != 5 {
		return nil, fmt.Errorf("found %s, expected a numpy array", describe(v))
	}
	dtype, ok := array.state[2].(*pickled)
	if !ok || dtype.what != "dtype" || len(dtype.args) == 0 || dtype.args[0] != "u1" || array.state[3] != false {
		return nil, fmt.Errorf("found another numpy array, expected one of bytes (u1) in C order")
	}
	content, ok := array.state[4].([]byte)
	shape, isTuple := array.state[1].(tuple)
	if !ok || !isTuple || len(shape) != 2 || shape[1] != row || shape[0] != len(content)/row || len(content)%row != 0 {
		return nil, fmt.Errorf("found a numpy array of %d bytes, expected one of N×%d of them", len(content), row)
	}
	return content, nil
}
