// Package lab makes an entry of the catalog from its declaration: the parameters of a figure, table or theorem, its
// trials, its picture and its claims. The package checks limits, reads or computes trials, groups records, and gives
// pictures their caption and claims their source and confidence.
//
// # An entry
//
// .github/CONTRIBUTING.md has a whole file, under "A figure of your own, in full".
//
// Declare returns the function that runs the entry: a reader calls notebook.Run(mypaper.Figure1, p), and the command
// knows it as "mypaper/figure1".
//
// # How it is meant
//
//   - A group is a trial with all its seeds, and belongs to a part. Part, Where, Lists, Rows and X replace maps of
//     records and offsets in lists; [study.By] splits what a loop would.
//   - T is what the key of a record speaks of, as it is marshalled. If the key says less or more, [Bench.Key] makes it.
//     If an entry has trials of several types, T is an interface or a struct with a marshaller; [As] brings groups of
//     another type into it.
//   - Limits are tags; Broken of internal/limits lists the rules. Rules has only what a tag cannot say: several fields,
//     or names of a table.
//   - A picture is built by adding: Row, Add, Say. The scale note comes last by itself. A look has a name, see
//     [plots.Looks].
//   - Curve draws means with error bars, Band with a band. No caption says what these are until you add it:
//     f.Say("%s.", r.Interval("band", r.Params.Seeds, "seed")).
//   - Settings that a reader varies, Vary func(row string, s *Settings) `json:"-"`, are not in the parameters' JSON:
//     [study.Vary] applies that, and [Changes] says what it changed and puts it into the picture's hash.
//   - A claim is a statistic and where the paper says that it is: Mean, Difference, OverSeeds or Of, then Near,
//     Between, AtMost, AtLeast, Above, Below. A verdict of another form takes r.Claim(…).Claim into package verdict.
//     An interval that you compute yourself is at the claim's Confidence, which Family raises, not at the result's.
//   - The name of a claim begins with its rows of the ledger, "[RO001]". If it judges no row, it begins with "own:".
//   - Values that are 0 or 1 are a [verdict.Share], whose interval is right for any share. Mean takes Student's, which
//     is [0, 0] if no value is 1.
//   - Fields View and StoredOnly of the parameters mean the same in every entry and are read here.
//   - An entry of several questions has a file a question: `var boundary = lab.Question[P, T]{Name: "boundary", …}`
//     with its trials, picture and claims, and the entry lists them.
//
// # What is opened
//
// [Entry.Bench] opens data and a device. Its Study says what a record is filed under (ID) and what computes it (Code),
// where that is not the entry. Batch computes trials in one graph: together those of one Together, one job each with a
// checkpoint of its own. [Each] makes a job of every trial, for searches and trainings, which save checkpoints and keep
// what they compile for the next seed. By gives each task or part a bench of its own. Facts carries to the picture what
// only the data know. [Entry.Compute] is for groups that come from elsewhere; it calls [Bench.Compute] itself, whose
// Study then has all fields set, by [Result.Study] or otherwise, and fills Groups and Facts of the result. Without that
// T may carry what a picture needs beside the key.
//
// # Pitfalls
//
//   - What an entry's functions use must not name the entry: Go calls it an initialization cycle. It includes the
//     type-free helpers that call Figure1(ctx, p).
//   - Nothing moves out of or into a package that a [code.Kind] hashes: no shipped record would be found. The golden
//     test shows it as missing trials.
//   - The order of parameters' fields and the words of keys stay: keys are JSON, and the picture's metadata have a hash
//     of the parameters.
//   - With StoredOnly a record may be nil: Values, Rows and Lists leave it out, a loop of your own must, too.
//   - Trials is called by checks and tests without data; it opens nothing.
//   - Bench is called even if all trials are stored: it opens what keys need, and loads the rest in Run or Device.
//   - A misspelt rule in a tag panics at first use.
package lab
