"""A spout that can be replayed, and a bolt with two output ports."""

from penstock import Bolt, Spout

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
)


class Sentences(Spout):
    """The same sentences every time: the n-th is chosen by n, so it can be replayed."""

    def initialize(self, count=1000):
        self.count = count

    def emit_from(self, offset, limit):
        for number in range(offset, min(offset + limit, self.count)):
            yield (SENTENCES[number % len(SENTENCES)],)

    def ended(self, offset):
        return offset >= self.count


class Split(Bolt):
    """Words longer than some length go to `words`, the others to `short`."""

    def initialize(self, longer_than):
        self.longer_than = longer_than

    def process(self, tup):
        for word in tup.sentence.split():
            self.emit(word, port="words" if len(word) > self.longer_than else "short")
