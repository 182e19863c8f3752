"""What the headline numbers are, in the words of every report, model card and docs/headline_numbers.md."""

DEFINITIONS = """\
- **Solved up to**: the largest length (distance) up to which the lower bound of exact match is at least .9 at every cell,
  the other axis as trained; the worst and the best seed. "≥" where that is the last one evaluated. Of text: the largest
  length up to which perplexity is at most 1.05 times that at the trained length, at every length evaluated.
- **Mean over a split**: over its cells, then over the seeds that fit.
- **Sum**: accuracy summed over the distances evaluated, from 1 on (arXiv 2609.11913 sums 1 to 120). **P**: the sum beyond
  the trained distances over the sum up to their end. P means nothing unless every distance from 1 on was evaluated and
  accuracy reaches its floor there, and it falls with a wider trained range by construction. Beside it is the P of a
  model that overshoots by five tokens, and that of the 2-gram baseline.
- **W**: accuracy beyond the trained distances, above the floor, as a share of what can be known, summed over the
  distances evaluated: distances won.
- **N-gram baselines** (what followed the last one or two tokens when they last occurred?) are scored over the same tokens
  as the score beside them: the rest of a paste, or all its tokens. The bag of words (the commonest token so far) is scored
  over all.
- **Fit**: in validation, token accuracy of at least .99 at every trained cell (streams of copies: a mean of .95 over the
  trained distances). The share of seeds that fit has an exact (Clopper-Pearson) interval; seeds that did not fit are left
  out of every mean.
- **Intervals** over seeds are Student's t at 95 %, from three seeds on; those of a cell are Wilson's over sequences, or a
  bootstrap over sequences where each has several answers.
- **Best**: the best seed, chosen on the very cells it is shown for; read it only beside the mean.
- **Same cells**: whatever compares arms is over the cells that all of them have (a difference: that both have), in every
  seed; the others are named.
- **Differences**: the paired sign-flip test over the seeds where both arms fit, exact up to 40 pairs and by Monte Carlo
  with its standard error beyond, with Holm's correction over all contrasts of a panel, or those declared beforehand;
  beside the smallest p that so many pairs of seeds can reach. An arm is called higher only where the test is significant;
  "underpowered" where no outcome could be.
- The **first token** of a paste, which must resolve the distance, and the **rest**, which content can find, are shown
  apart.
- **Free running** (`posgen evaluate --free-running`): token accuracy where the model reads its own pasted tokens instead of
  the right ones, as when it generates greedily. A sequence is right as a whole in both cases or in neither."""
