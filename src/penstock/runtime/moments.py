from penstock.epochs.moments import *  # noqa
