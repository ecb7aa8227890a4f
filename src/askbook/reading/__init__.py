"""The reader: does this passage answer, where, and does it support this sentence?"""
