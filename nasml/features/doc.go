// Package features maps examples to features, of which a linear model is
// trained: random Fourier features of images, hashed n-grams of texts, mixtures
// of feature maps; ridge regression and linear support vector machines.
//
// A feature matrix Φ, of shape [n, d], is known by its products ([Operator]),
// because it may be a matrix on the host, blocks on a device, or features that
// are recomputed for every product and never exist at once. With weight
// sharing (Khodak+ 2020, Algorithm 1) every example has its own feature map, so
// row i is φ_{c(i)}(xᵢ) of its configuration c(i).
//
// Everything but graph functions returns errors. NaN in an input is one.
package features
